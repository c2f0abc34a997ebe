import { viewDeaths } from '../group/deaths.ts'
import { failTopicName } from '../group/fail-topics.ts'
import type { QueueOffset, Subscription } from '../model.ts'
import type { AssignedQueue } from '../protocol/membership.ts'

/** A queue as a consumer that may work on it is told of it. */
export function toAssignedQueue(offset: QueueOffset, subscription: Subscription): AssignedQueue {
  const { groupName, topicName, topicId, failTopicId } = subscription
  const isOfFailTopic = offset.originTopicName !== undefined
  const { retryCount, retryInPlace, tag, timeoutSeconds, trace } = subscription
  return {
    queueOffsetId: offset.queueOffsetId,
    offsetVersion: offset.offsetVersion,
    offset: offset.offset,
    consumerGroupName: offset.groupName,
    topicName: offset.topicName,
    queueId: offset.queueId,
    originTopicName: topicName,
    topicType: isOfFailTopic ? 2 : 1,
    topicId: isOfFailTopic ? (failTopicId ?? topicId) : topicId,
    delayProcessTime: isOfFailTopic ? subscription.retryDelaySeconds : subscription.delayProcessTimeSeconds,
    threadSize: isOfFailTopic ? 1 : subscription.threadSize,
    pullBatchSize: subscription.pullBatchSize,
    consumerBatchSize: subscription.consumerBatchSize,
    // PMQ's client handles a message of a fail queue only while its own count is below this: N of it are N - 1 there.
    retryCount: retryCount + 1,
    stopFlag: offset.isStopped ? 1 : 0,
    traceFlag: trace ? 1 : 0,
    lastId: 0,
    maxPullTime: subscription.maxPullTimeSeconds,
    timeout: timeoutSeconds,
    ...(tag && { tag }),
    ...(failTopicId !== undefined && { failTopicName: failTopicName(groupName, topicName) }),
    ...(isOfFailTopic ? backoffOf(subscription) : retryInPlace && { retryInPlace }),
    ...viewDeaths(offset),
  }
}

const backoffOf = ({ retryBackoffRate, maxRetryDelaySeconds }: Subscription) => ({
  retryBackoffRate,
  maxRetryDelay: maxRetryDelaySeconds,
})
