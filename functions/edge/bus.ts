import { EventBridgeClient, PutEventsCommand, type PutEventsRequestEntry } from '@aws-sdk/client-eventbridge'
import type { Bus } from '../../core/core.ts'
import { logError } from './log.ts'

/** What the service says on its bus, and the rules in `lib` listen for. */
export const eventSource = 'pmq'
export const groupChangedType = 'GroupChanged'
export type GroupChangedDetail = { groupName: string }

/** So many events a request may have. */
const maxEntries = 10
/** Somebody waits for an answer meanwhile, and word that is lost costs time only. */
const patience = { connectionTimeout: 1_000, requestTimeout: 2_000, throwOnRequestTimeout: true }

/**
 * Says on EventBridge what has happened. Word that could not be sent costs time only: the tick finds what was missed. So a
 * failure is logged and does not fail the request that it belongs to. What is said in one turn goes in one request.
 */
export function createEventBridgeBus(busName: string): Bus {
  const client = new EventBridgeClient({ maxAttempts: 2, requestHandler: patience })
  let waiting: { entry: PutEventsRequestEntry; answer: (outcome: 'lost' | undefined) => void }[] = []

  function flush(): void {
    const taken = waiting
    waiting = []
    for (let i = 0; i < taken.length; i += maxEntries) void send(taken.slice(i, i + maxEntries))
  }

  async function send(some: typeof waiting): Promise<void> {
    const Entries = some.map(({ entry }) => entry)
    try {
      const answered = await client.send(new PutEventsCommand({ Entries }))
      const refused = some.map((_, i) => answered.Entries?.[i]?.ErrorCode)
      for (const [i, { answer }] of some.entries()) if (refused[i] === undefined) answer(undefined)
      const refusal = refused.find(code => code !== undefined)
      if (refusal) throw new Error(`EventBridge refused ${answered.FailedEntryCount} events: ${refusal}`)
    } catch (error) {
      const [first] = Entries
      logError(
        'the bus could not be told',
        { type: first?.DetailType, detail: first?.Detail, events: some.length },
        error,
      )
    }
    // Of what was taken another answer has been given.
    for (const { answer } of some) answer('lost')
  }

  function say(DetailType: string, detail: object): Promise<'lost' | undefined> {
    const entry = { EventBusName: busName, Source: eventSource, DetailType, Detail: JSON.stringify(detail) }
    const { promise, resolve } = Promise.withResolvers<'lost' | undefined>()
    if (waiting.push({ entry, answer: resolve }) === 1) queueMicrotask(flush)
    return promise
  }

  return {
    async groupChanged(groupName) {
      const detail: GroupChangedDetail = { groupName }
      await say(groupChangedType, detail)
    },
    tell: ({ type, ...detail }) => say(type, detail),
  }
}
