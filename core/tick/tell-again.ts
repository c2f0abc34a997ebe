import type { Core } from '../core.ts'
import { forEachOf } from '../for-each-of.ts'
import { alignNotifies } from '../notify/align.ts'
import type { Target } from '../notify/target.ts'
import type { Look } from './look.ts'
import type { TickReport } from './report.ts'

/** So many queues at once are told of again; the others within the next minutes. */
const maxRetold = 1_000

/** What waits though a target should have heard of it: word was lost, or whoever heard it has given up. */
export async function tellAgain(core: Core, { groupName, idle }: Look, report: TickReport): Promise<void> {
  const queues = idle.slice(0, Math.max(0, maxRetold - report.retold))
  if (queues.length === 0) return
  // One that fails has its own time, and one that is disabled hears nothing.
  const targets = await core.store.readTargets({ groupName })
  const hears = ({ state: { isDisabled, openUntilMs = 0 } }: Target) => !isDisabled && openUntilMs <= core.clock.now()
  if (!targets.some(hears)) return
  report.retold += queues.length
  await alignNotifies(core, groupName)
  await forEachOf(queues, ({ topicName, queueId }) =>
    core.bus.tell({ type: 'QueueAppended', topicName, queueId, isDue: true }),
  )
}
