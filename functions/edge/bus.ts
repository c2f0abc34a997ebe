import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge'
import type { Bus } from '../../core/core.ts'
import { logError } from './log.ts'

/** What the service says on its bus, and the rule in `lib` listens for. */
export const eventSource = 'pmq'
export const groupChangedType = 'GroupChanged'
export type GroupChangedDetail = { groupName: string }

/**
 * Says on EventBridge what has happened. Word that could not be sent costs time only: the tick finds the group within a
 * minute. So a failure is logged and does not fail the request that it belongs to.
 */
export function createEventBridgeBus(busName: string): Bus {
  const client = new EventBridgeClient({})
  async function say(DetailType: string, detail: object): Promise<void> {
    const entry = { EventBusName: busName, Source: eventSource, DetailType, Detail: JSON.stringify(detail) }
    try {
      const { FailedEntryCount, Entries } = await client.send(new PutEventsCommand({ Entries: [entry] }))
      if (FailedEntryCount) throw new Error(`EventBridge refused the event: ${Entries?.[0]?.ErrorCode}`)
    } catch (error) {
      logError('the bus could not be told', { type: DetailType, detail: JSON.stringify(detail) }, error)
    }
  }

  return {
    async groupChanged(groupName) {
      const detail: GroupChangedDetail = { groupName }
      await say(groupChangedType, detail)
    },
    tell: ({ type, ...detail }) => say(type, detail),
  }
}

/** For a function that announces nothing. */
export const silentBus: Bus = { groupChanged: async () => {}, tell: async () => {} }
