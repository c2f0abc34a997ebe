import { setTimeout as sleep } from 'node:timers/promises'
import type { GroupView, ResetView } from '../../core/protocol/admin.ts'
import { admin } from '../../demo/admin.ts'
import type { History } from '../../test/checker/history.ts'

/** Sets back offsets, stops queues and starts them again, and changes settings, until told to end. */
export async function operate(options: {
  url: string
  topicName: string
  groupName: string
  history: History
  signal: AbortSignal
}): Promise<{ resets: number; stops: number }> {
  const { url, topicName, groupName, history, signal } = options
  const path = `/groups/${groupName}`
  const done = { resets: 0, stops: 0 }

  async function reset(queueId: number, committed: number) {
    const offset = Math.max(0, committed - Math.floor(Math.random() * 100))
    const op = history.resetInvoke('operator', { group: groupName, queueId, offset })
    ;(await admin(url, 'POST', `${path}/reset`, { of: { queueId }, to: { offset } })) as ResetView
    history.resetOk('operator', op)
    done.resets++
  }

  async function stopForAWhile(queueId: number) {
    await admin(url, 'POST', `${path}/stop`, { of: { queueId } })
    await pause(2_000)
    await admin(url, 'POST', `${path}/start`, { of: { queueId } })
    done.stops++
  }

  async function pause(ms: number) {
    await sleep(ms, undefined, { signal }).catch(() => undefined)
  }

  for (let turn = 0; !signal.aborted; turn++) {
    await pause(3_000)
    const { queues } = (await admin(url, 'GET', path)) as GroupView
    const queue = queues[Math.floor(Math.random() * queues.length)]
    if (signal.aborted || !queue) break
    if (turn % 3 === 0) await reset(queue.queueId, queue.offset)
    if (turn % 3 === 1) await stopForAWhile(queue.queueId)
    if (turn % 3 === 2) {
      const settings = { threadSize: 1 + (turn % 5), consumerBatchSize: 1 + (turn % 7) }
      await admin(url, 'PUT', `${path}/subscriptions/${topicName}`, settings)
    }
  }
  return done
}
