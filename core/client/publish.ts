import type { Core } from '../core.ts'
import { isWritable, placeMessages } from '../log/placement.ts'
import type { TopicSnapshot } from '../model.ts'
import type { PublishRequest, PublishResponse, PublishRun } from '../protocol/publish.ts'
import { findTopic } from './find.ts'
import { refuseMessages } from './message-limits.ts'
import { findMoved, mayHaveMoved, nameOf, without } from './moved-parts.ts'
import { type InternalRequest, storePlacement, usedForOthers } from './store-placement.ts'

/**
 * Publishes messages: one batch for each queue that they go to. Answered when all are durable. What could not be stored
 * is named run by run, and `sleepTime > 0` says that sending the same again (with the same `publishId`) may succeed and
 * stores only what is missing.
 */
export async function publish(core: Core, request: PublishRequest): Promise<PublishResponse> {
  const topicName = request.topicName ?? ''
  const messages = request.msgs ?? []
  if (messages.length === 0) return refused(`topic_${topicName}_msg_is_null!`)
  // Its queues may have changed since the earlier attempt, which may have known that already.
  if (mayHaveMoved(request)) core.topics.forget(topicName)
  const snapshot = await findTopic(core, topicName)
  if (snapshot === undefined) return refused(`topic_${topicName}_is_not_exist!`)
  if (snapshot.topic.failOf) return refused(`topic_${topicName} takes failures of its group only`)
  const tooLarge = refuseMessages(messages)
  if (tooLarge !== undefined) return refused(tooLarge)
  return publishTo(core, snapshot, request)
}

/** Publishes messages that may be published to a topic. */
export async function publishTo(
  core: Core,
  snapshot: TopicSnapshot,
  request: InternalRequest,
): Promise<PublishResponse> {
  const messages = request.msgs ?? []
  const topicName = snapshot.topic.name
  if (snapshot.queues.length === 0) return refused(`topic1_${topicName}_and_has_no_queue!`)
  if (!snapshot.queues.some(isWritable)) return refused(`topic_${topicName}_and_has_no_queue!`)
  const publishId = request.publishId ?? core.newId()
  const placed = placeMessages(topicName, snapshot.queues, messages)
  const earlier = await findMoved(core, snapshot, request, placed)
  if (earlier === 'others') return refused(usedForOthers(publishId))
  const { placements, refusals } = earlier ? without(placed, earlier) : placed
  const stored = await Promise.all(
    placements.map(placement => {
      return storePlacement(core, { snapshot, request, placement }, nameOf(publishId, placement, messages.length))
    }),
  )
  const runs = [
    ...(earlier?.runs ?? []),
    ...stored.flatMap(s => s.runs),
    ...refusals.map(r => ({ first: r.index, count: 1, error: r.error })),
  ]
  await announce(core, snapshot, request, runs)
  return answer(
    core,
    runs,
    stored.some(s => s.isRetryable),
    request.publishId != null,
  )
}

/** Also what an earlier attempt has stored: it may have died before it could say so. */
async function announce(
  core: Core,
  { topic, notifies }: TopicSnapshot,
  { msgs }: InternalRequest,
  runs: readonly PublishRun[],
): Promise<void> {
  if (notifies.length === 0) return
  // A dead letter that somebody has resent waits for nothing.
  const isDue = topic.failOf !== undefined && msgs?.some(({ retryCount }) => !retryCount)
  const queueIds = new Set(runs.flatMap(({ queueId }) => queueId ?? []))
  await Promise.all(
    Array.from(queueIds, queueId => core.announce({ topicName: topic.name, queueId, ...(isDue && { isDue }) })),
  )
}

const refused = (msg: string): PublishResponse => ({ suc: false, msg, sleepTime: 0 })

const maxSleepMs = 1000

function answer(core: Core, runs: PublishRun[], isRetryable: boolean, hasPublishId: boolean): PublishResponse {
  const offsets = runs.sort((a, b) => a.first - b.first)
  const failure = offsets.find(run => run.error !== undefined)
  if (failure === undefined) return { suc: true, sleepTime: 0, offsets }
  // Without a publishId, sending again would store twice what is stored already.
  const mayRetry = isRetryable && (hasPublishId || offsets.every(run => run.error !== undefined))
  const sleepTime = mayRetry ? 1 + Math.floor(core.random() * maxSleepMs) : 0
  return { suc: false, msg: failure.error ?? '', sleepTime, offsets }
}
