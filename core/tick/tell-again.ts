import type { Core } from '../core.ts'
import { forEachOf } from '../for-each-of.ts'
import { alignNotifies } from '../notify/align.ts'
import type { Look } from './look.ts'
import type { TickReport } from './report.ts'

/** So many queues at once are told of again; the others within the next minutes. */
const maxRetold = 1_000

/** What waits though a target should have heard of it: word was lost, or whoever heard it has given up. */
export async function tellAgain(core: Core, { groupName, idle }: Look, report: TickReport): Promise<void> {
  const queues = idle.slice(0, Math.max(0, maxRetold - report.retold))
  if (queues.length === 0) return
  report.retold += queues.length
  await alignNotifies(core, groupName)
  await forEachOf(queues, ({ topicName, queueId }) =>
    core.bus.tell({ type: 'QueueAppended', topicName, queueId, isDue: true }),
  )
}
