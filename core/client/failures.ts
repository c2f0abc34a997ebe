import type { Core } from '../core.ts'
import { placesOf, recordFailures, recordSuccesses } from '../failed/record.ts'
import { trailOf } from '../failed/trail.ts'
import { originOf } from '../group/fail-topics.ts'
import { readMessagesAt } from '../log/read-at.ts'
import type { QueueOffset, Topic, TopicSnapshot } from '../model.ts'
import type { FailuresRequest, FailuresResponse } from '../protocol/failures.ts'
import type { PublishRequest } from '../protocol/publish.ts'
import { meetVersion } from './fencing.ts'
import { findTopic, findTopicWith, isName } from './find.ts'
import { refuseFailures } from './message-limits.ts'
import { mayHaveMoved } from './moved-parts.ts'
import { publishTo } from './publish.ts'
import type { InternalMessage } from './store-placement.ts'

/**
 * Takes what a consumer failed to handle into the fail topic of its subscription, and records what has become of each
 * message: failed, or handled after all (`ids`). Answered with success only when all of it is durable: from then on the
 * consumer may commit past it. First the log, then the records: whoever dies in between leaves the message in the fail
 * topic, and who sends the same again makes the same records. A failure was accepted when it was published first, so no
 * token is asked for again, and no size of what may have grown since: what was refused here could go nowhere else. So many
 * messages, or a body of that size, no publish was ever allowed to have.
 *
 * Who says under which place and version it has the queue is refused when it has lost it: the next owner is handed the
 * same messages, and says itself what fails. PMQ's clients say nothing; that the queue is of the subscription is all that
 * can be known of them. They do not look at the answer either: of what they send while the store is away a record may be
 * missing, and what they have handled counts as passed over then.
 */
export async function publishAndUpdateResultFailMsg(core: Core, request: FailuresRequest): Promise<FailuresResponse> {
  const { failMsg, ids, queueId } = request
  const stored = failMsg == null ? await checkOwner(core, request) : await storeFailures(core, request, failMsg)
  if (!stored.suc || queueId == null || !ids?.length) return stored
  return (await recordSuccesses(core, queueId, ids)) ? stored : notRecorded
}

const refused = (msg: string): FailuresResponse => ({ suc: false, msg })

/** Said also where the messages are stored: the same request again records them, and stores nothing twice. */
const notRecorded = refused('the store asks for a slower pace')

async function storeFailures(core: Core, request: FailuresRequest, failMsg: PublishRequest): Promise<FailuresResponse> {
  const topicName = failMsg.topicName ?? ''
  if (!failMsg.msgs?.length) return refused(`topic_${topicName}_msg_is_null!`)
  const tooLarge = refuseFailures(failMsg.msgs)
  if (tooLarge !== undefined) return refused(tooLarge)
  if (mayHaveMoved(failMsg)) core.topics.forget(topicName)
  const failTopic = await findTopic(core, topicName)
  if (failTopic === undefined) return refused(`topic_${topicName}_is_not_exist!`)
  const queue = await findQueue(core, request, failTopic)
  if ('suc' in queue) return queue
  const { clientIp, cause } = request
  const msgs = await withTrails(core, queue, failMsg.msgs)
  const { suc, msg, offsets } = await publishTo(core, failTopic, {
    ...(clientIp != null && { clientIp }),
    ...failMsg,
    msgs,
  })
  // Also where others are missing: a PMQ client does not come again.
  const isRecorded = await recordFailures(core, queue.failOf, (offsets ?? []).flatMap(placesOf), cause)
  return suc && !isRecorded ? notRecorded : { suc, ...(msg !== undefined && { msg }) }
}

/** The messages with their past: of a queue of the topic that is the place itself, of the fail topic it is in the log. */
async function withTrails(
  core: Core,
  { queueId, isOfFailTopic, failOf }: Queue,
  messages: NonNullable<PublishRequest['msgs']>,
): Promise<InternalMessage[]> {
  const offsets = messages.map(({ id }) => id ?? 0).filter(offset => offset > 0)
  const read = isOfFailTopic ? await readMessagesAt(core, queueId, offsets) : []
  const formers = new Map(read.map(former => [former.offset, former]))
  // The queue that they were sent to was one of the topic.
  return messages.map(({ partitionInfo: _former, ...message }) => {
    const from = message.id ? { queueId, offset: message.id } : undefined
    return { ...message, failed: trailOf(failOf, from, from && formers.get(from.offset)) }
  })
}

/** The queue that failures come from, and whose they are. */
type Queue = { queueId: number; isOfFailTopic: boolean; failOf: NonNullable<Topic['failOf']> }

/** Where failures come from; or why they cannot go to this topic. */
async function findQueue(
  core: Core,
  request: FailuresRequest,
  { topic }: TopicSnapshot,
): Promise<Queue | FailuresResponse> {
  const { consumerGroupName: groupName, queueId } = request
  const { failOf } = topic
  if (failOf === undefined || queueId == null || (groupName != null && groupName !== failOf.groupName)) {
    return notTheirs(request, topic)
  }
  const place = await findPlace(core, request)
  if (place === 'lost') return fenced(request)
  if (place !== 'unnamed') {
    const isOfSubscription = place.queueId === queueId && originOf(place) === failOf.topicName
    return isOfSubscription
      ? { queueId, failOf, isOfFailTopic: place.originTopicName !== undefined }
      : notTheirs(request, topic)
  }
  const hasQueue = ({ queues }: TopicSnapshot) => queues.some(queue => queue.queueId === queueId)
  for (const name of [failOf.topicName, topic.name]) {
    if (await findTopicWith(core, name, hasQueue)) return { queueId, failOf, isOfFailTopic: name === topic.name }
  }
  return notTheirs(request, topic)
}

/** Whether somebody who only tells of successes has the queue, as far as can be known. */
async function checkOwner(core: Core, request: FailuresRequest): Promise<FailuresResponse> {
  if (!request.ids?.length) return { suc: true }
  const place = await findPlace(core, request)
  if (place === 'lost') return fenced(request)
  if (place === 'unnamed' || place.queueId === request.queueId) return { suc: true }
  return refused(`queueId_${request.queueId} is not of this place`)
}

/** The place under which a consumer says that it has the queue, if it has it still. */
async function findPlace(
  core: Core,
  { consumerGroupName: groupName, queueOffsetId, offsetVersion, consumerId }: FailuresRequest,
): Promise<QueueOffset | 'unnamed' | 'lost'> {
  if (groupName == null || queueOffsetId == null || offsetVersion == null) return 'unnamed'
  const place = isName(groupName) ? await core.store.readQueueOffset({ groupName, queueOffsetId }) : undefined
  if (place) meetVersion(core, place)
  const isTheirs = place?.offsetVersion === offsetVersion && !isOthers(place, consumerId)
  return isTheirs ? place : 'lost'
}

/** A claimant is no consumer: its version says enough. */
const isOthers = (place: QueueOffset, consumerId: number | null | undefined) =>
  consumerId != null && consumerId > 0 && place.claim === undefined && place.consumerId !== consumerId

const fenced = ({ queueId }: FailuresRequest): FailuresResponse => ({
  suc: false,
  fenced: true,
  msg: `queueId_${queueId} has another owner`,
})

const notTheirs = ({ queueId }: FailuresRequest, { name }: Topic) =>
  refused(`topic_${name} is not where failures of queueId_${queueId} go`)
