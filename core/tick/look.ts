import { readWorking } from '../admin/group-view.ts'
import type { Core } from '../core.ts'
import { forEachOf } from '../for-each-of.ts'
import { originOf } from '../group/fail-topics.ts'
import { findBacklog, type MeasuredBacklog } from '../group/stalls.ts'
import type { Lag } from '../lag.ts'
import type { GroupSnapshot, QueueOffset, Subscription } from '../model.ts'

/** What a look at a group has found. */
export type Look = {
  groupName: string
  hasMembers: boolean
  subscriptions: readonly Subscription[]
  lags: Lag[]
  /** Queues on which nobody gets on, though the group is running. */
  stalled: QueueOffset[]
  /** Queues with messages of which nothing was committed for a minute. */
  idle: QueueOffset[]
  /** How far everything is. */
  state: string
  /** Something was appended or committed lately. */
  isInUse: boolean
}

/** A handler may take minutes for a message, or for the first one that it failed to do. */
const stallPatienceMs = 600_000
/** Who was told of messages has begun with them after so long. */
const idleAfterMs = 60_000
const inUseWithinMs = 15 * 60_000

type Found = { queue: QueueOffset; end: number; backlog: MeasuredBacklog }

/** Looks at what waits for a group: a read for each queue, and one more or two where something waits that did not before. */
export async function lookAt(core: Core, snapshot: GroupSnapshot): Promise<Look> {
  const { group, members, subscriptions } = snapshot
  const { clock, logWatch } = core
  const copies = await Promise.all(
    (await readWorking(core, snapshot)).map(async ({ offsets }) => {
      const found: Found[] = []
      await forEachOf(offsets, async (queue, i) => {
        const end = await logWatch.findEnd(queue.topicName, queue.queueId)
        const deps = { clock, findUnread: logWatch.findUnread }
        found[i] = { queue, end, backlog: await findBacklog(deps, queue, subscriptions, end, stallPatienceMs) }
      })
      return found
    }),
  )
  const all = copies.flat()
  const nowMs = clock.now()
  const isIdle = ({ queue, backlog: { waitingSinceMs } }: Found) =>
    waitingSinceMs !== undefined &&
    !queue.isStopped &&
    nowMs - Math.max(waitingSinceMs, queue.committedAtMs ?? 0) > idleAfterMs
  return {
    groupName: group.name,
    hasMembers: members.length > 0,
    subscriptions,
    lags: worstOf(copies.flatMap(found => lagsOf(group.name, found, nowMs, members.length > 0))),
    stalled: members.length > 0 ? all.filter(({ backlog }) => backlog.isStalled).map(({ queue }) => queue) : [],
    idle: all.filter(isIdle).map(({ queue }) => queue),
    state: all.map(({ queue: { queueOffsetId, offset }, end }) => `${queueOffsetId}:${offset}:${end}`).join(' '),
    isInUse: all.some(({ queue: { committedAtMs = 0 }, backlog: { waitingSinceMs = 0 } }) => {
      return nowMs - Math.max(committedAtMs, waitingSinceMs) < inUseWithinMs
    }),
  }
}

function lagsOf(groupName: string, found: readonly Found[], nowMs: number, isRunning: boolean): Lag[] {
  return Array.from(Map.groupBy(found, ({ queue }) => queue.topicName).values(), (ofTopic): Lag => {
    const [{ queue } = notEmpty()] = ofTopic
    const waiting = ofTopic.map(({ backlog }) => backlog)
    const first = waiting
      .filter(({ endsAtMs }) => endsAtMs !== undefined)
      .toSorted((a, b) => (a.endsAtMs ?? 0) - (b.endsAtMs ?? 0))[0]
    const { endsAtMs = 0, waitingSinceMs = 0 } = first ?? {}
    return {
      groupName,
      topicName: originOf(queue),
      isFailTopic: queue.originTopicName !== undefined,
      messages: waiting.reduce((sum, { lag }) => sum + lag, 0),
      oldestAgeMs: Math.max(
        0,
        ...waiting.map(each => (each.waitingSinceMs === undefined ? 0 : nowMs - each.waitingSinceMs)),
      ),
      ...(first && { retentionMs: endsAtMs - waitingSinceMs, retentionLeftMs: Math.max(0, endsAtMs - nowMs) }),
      lost: waiting.reduce((sum, { lost }) => sum + lost, 0),
      stalledQueues: isRunning ? waiting.filter(({ isStalled }) => isStalled).length : 0,
    }
  })
}

/**
 * Of copies for several consumers, what is worst in a topic, by each measure: another one may be behind than the one that loses
 * messages. What stalls, of all of them.
 */
function worstOf(lags: readonly Lag[]): Lag[] {
  const byTopic = Map.groupBy(lags, ({ topicName, isFailTopic }) => `${topicName} ${isFailTopic}`)
  return Array.from(byTopic.values(), ofTopic =>
    ofTopic.reduce((worst, each) => ({
      ...(endsBefore(each, worst) ? each : worst),
      messages: Math.max(worst.messages, each.messages),
      oldestAgeMs: Math.max(worst.oldestAgeMs, each.oldestAgeMs),
      lost: Math.max(worst.lost, each.lost),
      stalledQueues: worst.stalledQueues + each.stalledQueues,
    })),
  )
}

const endsBefore = (a: Lag, b: Lag) =>
  (a.retentionLeftMs ?? Number.POSITIVE_INFINITY) < (b.retentionLeftMs ?? Number.POSITIVE_INFINITY)

const notEmpty = (): never => {
  throw new TypeError('a list is empty that is not')
}
