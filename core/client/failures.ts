import type { Core } from '../core.ts'
import { originOf } from '../group/fail-topics.ts'
import type { QueueOffset, Topic, TopicSnapshot } from '../model.ts'
import type { FailuresRequest, FailuresResponse } from '../protocol/failures.ts'
import { meetVersion } from './fencing.ts'
import { findTopic, findTopicWith, isName } from './find.ts'
import { refuseFailures } from './message-limits.ts'
import { mayHaveMoved } from './moved-parts.ts'
import { publishTo } from './publish.ts'

/**
 * Takes what a consumer failed to handle into the fail topic of its subscription. Answered with success only when all of it
 * is durable: from then on the consumer may commit past it. It was accepted when it was published first, so no token is
 * asked for again, and no size of what may have grown since: what was refused here could go nowhere else. So many messages,
 * or a body of that size, no publish was ever allowed to have.
 *
 * Who says under which place and version it has the queue is refused when it has lost it: the next owner is handed the
 * same messages, and says itself what fails. PMQ's clients say nothing; that the queue is of the subscription is all that
 * can be known of them. What they handled after all (`ids`) needs no record: their commit says it.
 */
export async function publishAndUpdateResultFailMsg(core: Core, request: FailuresRequest): Promise<FailuresResponse> {
  const { failMsg } = request
  if (failMsg == null) return { suc: true }
  const topicName = failMsg.topicName ?? ''
  if (!failMsg.msgs?.length) return refused(`topic_${topicName}_msg_is_null!`)
  const tooLarge = refuseFailures(failMsg.msgs)
  if (tooLarge !== undefined) return refused(tooLarge)
  if (mayHaveMoved(failMsg)) core.topics.forget(topicName)
  const failTopic = await findTopic(core, topicName)
  if (failTopic === undefined) return refused(`topic_${topicName}_is_not_exist!`)
  const refusal = await refuseQueue(core, request, failTopic)
  if (refusal !== undefined) return refusal
  const { clientIp } = request
  // The queue that they were sent to was one of the topic.
  const msgs = failMsg.msgs.map(({ partitionInfo: _former, ...message }) => message)
  const { suc, msg } = await publishTo(core, failTopic, { ...(clientIp != null && { clientIp }), ...failMsg, msgs })
  return { suc, ...(msg !== undefined && { msg }) }
}

const refused = (msg: string): FailuresResponse => ({ suc: false, msg })

/** Why failures of a queue cannot go to a topic; undefined: they can. */
async function refuseQueue(
  core: Core,
  request: FailuresRequest,
  failTopic: TopicSnapshot,
): Promise<FailuresResponse | undefined> {
  const { consumerGroupName: groupName, queueOffsetId, offsetVersion, consumerId, queueId } = request
  const { failOf } = failTopic.topic
  const isOfGroup = failOf !== undefined && (groupName == null || groupName === failOf.groupName)
  if (!isOfGroup) return notTheirs(request, failTopic.topic)
  if (groupName == null || queueOffsetId == null || offsetVersion == null) {
    const origin = await findTopicWith(core, failOf.topicName, topic => hasQueue(topic, queueId))
    return origin || hasQueue(failTopic, queueId) ? undefined : notTheirs(request, failTopic.topic)
  }
  const place = isName(groupName) ? await core.store.readQueueOffset({ groupName, queueOffsetId }) : undefined
  if (place) meetVersion(core, place)
  if (place === undefined || place.offsetVersion !== offsetVersion || isOthers(place, consumerId)) {
    return { suc: false, fenced: true, msg: `queueId_${queueId} has another owner` }
  }
  const isOfSubscription = place.queueId === queueId && originOf(place) === failOf.topicName
  return isOfSubscription ? undefined : notTheirs(request, failTopic.topic)
}

const hasQueue = ({ queues }: TopicSnapshot, queueId: number | null | undefined) =>
  queues.some(queue => queue.queueId === queueId)

/** A claimant is no consumer: its version says enough. */
const isOthers = (place: QueueOffset, consumerId: number | null | undefined) =>
  consumerId != null && consumerId > 0 && place.claim === undefined && place.consumerId !== consumerId

const notTheirs = ({ queueId }: FailuresRequest, { name }: Topic) =>
  refused(`topic_${name} is not where failures of queueId_${queueId} go`)
