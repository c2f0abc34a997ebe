import type { EventBuses } from '../events/bus.ts'
import type { Access } from '../iam/access.ts'
import { arnOf } from '../template/account.ts'
import { defaultBus } from '../template/identities.ts'
import { type AwsAnswer, type AwsCall, accessDenied, awsError, notRehearsed } from './call.ts'

type Entry = { Source?: string; DetailType?: string; Detail?: string; EventBusName?: string; Resources?: string[] }

/** What EventBridge takes in one request. AWS takes 1 MB by now, and not in all partitions. */
const maxBytes = 256 * 1024
const maxEntries = 10

/** EventBridge's API, of which it has `PutEvents`. */
export function createEventsApi(
  buses: EventBuses,
  busNames: ReadonlySet<string>,
  access: Access,
): (call: AwsCall) => Promise<AwsAnswer> {
  return async ({ caller, operation, body }) => {
    if (operation !== 'PutEvents') return notRehearsed(`events:${operation}`)
    const { Entries = [] }: { Entries?: Entry[] } = JSON.parse(body.toString())
    if (Entries.length < 1 || Entries.length > maxEntries || body.length > maxBytes) {
      const given = `${Entries.length} entries and ${body.length} bytes`
      return awsError(
        400,
        'ValidationException',
        `1 to ${maxEntries} entries and ${maxBytes} bytes are accepted, not ${given}`,
      )
    }
    for (const { EventBusName, Source = '', DetailType = '' } of Entries) {
      const context = { 'events:source': [Source], 'events:detail-type': [DetailType] }
      const { refusal } = access.ask(
        caller,
        'events:PutEvents',
        arnOf('events', `event-bus/${busOf(EventBusName)}`),
        context,
      )
      if (refusal) return accessDenied(refusal)
    }
    const answers = Entries.map(entry => put(entry))
    const failed = answers.filter(answer => 'ErrorCode' in answer).length
    return { status: 200, body: JSON.stringify({ FailedEntryCount: failed, Entries: answers }) }
  }

  function put({ Source, DetailType, Detail, EventBusName, Resources = [] }: Entry) {
    if (!Source || !DetailType || Detail === undefined) {
      return { ErrorCode: 'InvalidArgument', ErrorMessage: 'Source, DetailType and Detail are required' }
    }
    const bus = busOf(EventBusName)
    // EventBridge takes an event for a bus that is not there and drops it; a mistake of the template is better heard of.
    if (!busNames.has(bus)) return { ErrorCode: 'ResourceNotFoundException', ErrorMessage: `there is no bus ${bus}` }
    try {
      return {
        EventId: buses.put(bus, {
          source: Source,
          detailType: DetailType,
          detail: JSON.parse(Detail),
          resources: Resources,
        }),
      }
    } catch {
      return { ErrorCode: 'MalformedDetail', ErrorMessage: 'Detail is malformed.' }
    }
  }
}

const busOf = (name: string | undefined) => name?.replace(/^arn:.*event-bus\//, '') ?? defaultBus
