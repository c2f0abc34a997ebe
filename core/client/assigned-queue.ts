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
    delayProcessTime: 0,
    threadSize: subscription.threadSize,
    pullBatchSize: subscription.pullBatchSize,
    consumerBatchSize: subscription.consumerBatchSize,
    retryCount: 0,
    stopFlag: offset.isStopped ? 1 : 0,
    traceFlag: 0,
    lastId: 0,
    maxPullTime: subscription.maxPullTimeSeconds,
    timeout: 0,
  }
}
