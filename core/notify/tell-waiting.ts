import type { Core } from '../core.ts'
import { limits } from '../protocol/limits.ts'

/**
 * Tells the bus of queues that have messages for a group, as if they came now: what waits since before somebody wanted to
 * hear of it. A consistent read of the log for each queue, of so many; the tick tells of the rest.
 */
export async function tellWaiting(core: Core, groupName: string): Promise<void> {
  const { offsets = [] } = (await core.store.readGroup(groupName)) ?? {}
  const places = offsets.slice(0, limits.maxQueuesToldAtOnce)
  await Promise.all(
    places.map(async ({ topicName, queueId, offset }) => {
      const end = await core.findEnd(topicName, queueId)
      if (offset < end - 1) await core.bus.tell({ type: 'QueueAppended', topicName, queueId, isDue: true })
    }),
  )
}
