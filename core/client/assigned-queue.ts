import type { QueueOffset, Subscription } from '../model.ts'
import type { AssignedQueue } from '../protocol/membership.ts'

/** A queue as a consumer that may work on it is told of it. */
export function toAssignedQueue(offset: QueueOffset, subscription: Subscription): AssignedQueue {
  return {
    queueOffsetId: offset.queueOffsetId,
    offsetVersion: offset.offsetVersion,
    offset: offset.offset,
    consumerGroupName: offset.groupName,
    topicName: offset.topicName,
    queueId: offset.queueId,
    originTopicName: offset.topicName,
    topicType: 1,
    topicId: subscription.topicId,
    delayProcessTime: subscription.delayProcessTimeSeconds,
    threadSize: subscription.threadSize,
    pullBatchSize: subscription.pullBatchSize,
    consumerBatchSize: subscription.consumerBatchSize,
    // PMQ's client handles a message of a fail queue only while its own count is below this (N retries are N - 1 there).
    retryCount: subscription.retryCount + 1,
    stopFlag: offset.isStopped ? 1 : 0,
    traceFlag: subscription.trace ? 1 : 0,
    lastId: 0,
    maxPullTime: subscription.maxPullTimeSeconds,
    timeout: subscription.timeoutSeconds,
    ...(subscription.tag && { tag: subscription.tag }),
    ...(subscription.retryInPlace && { retryInPlace: true }),
  }
}
