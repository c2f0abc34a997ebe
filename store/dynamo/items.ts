import type {
  Batch,
  BatchHeader,
  Codec,
  Consumer,
  Group,
  GroupCopy,
  GroupMode,
  GroupSettings,
  Member,
  Origin,
  Queue,
  QueueOffset,
  Subscription,
  SubscriptionSettings,
  Topic,
} from '../../core/model.ts'
import { type Key, keys } from '../keys.ts'
import {
  bin,
  binOf,
  bool,
  boolOf,
  type Item,
  num,
  numList,
  numListOf,
  numOf,
  str,
  strList,
  strListOf,
  strOf,
  strSet,
  strSetOf,
} from './attributes.ts'

/**
 * Records as items and back. What a key says already is not repeated in an attribute, unless the attribute spares
 * taking the key apart.
 */

/** TTL deletes in seconds, and a day after the end of retention: see "Never forget the head" in the architecture. */
const ttlOf = (expiresAtMs: number) => Math.floor(expiresAtMs / 1000) + 86_400

/** Names of one letter: every batch pays for them. `x` is DynamoDB's own; readers go by `e`. */
export const itemOfBatch = (batch: Batch): Item => ({
  q: num(batch.queueId),
  o: num(batch.base),
  n: num(batch.count),
  b: bin(batch.bytes),
  c: num(batch.codec),
  t: num(batch.appendedAtMs),
  p: str(batch.publishId),
  e: num(batch.expiresAtMs),
  x: num(ttlOf(batch.expiresAtMs)),
})

export const headerOf = (item: Item): BatchHeader => ({
  queueId: numOf(item, 'q'),
  base: numOf(item, 'o'),
  count: numOf(item, 'n'),
  publishId: strOf(item, 'p'),
  appendedAtMs: numOf(item, 't'),
  expiresAtMs: numOf(item, 'e'),
})

export const batchOf = (item: Item): Batch => ({
  ...headerOf(item),
  codec: numOf(item, 'c') as Codec,
  bytes: binOf(item, 'b'),
})

export const itemKey = ({ pk, sk }: Key): Item => ({ pk: str(pk), sk: str(sk) })

export const itemOfTopic = (topic: Topic): Item => ({
  ...itemKey(keys.topic(topic.name)),
  name: str(topic.name),
  topicId: num(topic.topicId),
  retentionMs: num(topic.retentionMs),
  createdAtMs: num(topic.createdAtMs),
  ...(topic.failOf && { failOfGroup: str(topic.failOf.groupName), failOfTopic: str(topic.failOf.topicName) }),
  ...(topic.additions !== undefined && { additions: num(topic.additions) }),
  ...(topic.maxLag !== undefined && { maxLag: num(topic.maxLag) }),
  ...(topic.maxLagSeconds !== undefined && { maxLagSeconds: num(topic.maxLagSeconds) }),
})

export const topicOf = (item: Item): Topic => ({
  name: strOf(item, 'name'),
  topicId: numOf(item, 'topicId'),
  retentionMs: numOf(item, 'retentionMs'),
  createdAtMs: numOf(item, 'createdAtMs'),
  ...(item.failOfGroup && {
    failOf: { groupName: strOf(item, 'failOfGroup'), topicName: strOf(item, 'failOfTopic') },
  }),
  ...(item.additions && { additions: numOf(item, 'additions') }),
  ...(item.maxLag && { maxLag: numOf(item, 'maxLag') }),
  ...(item.maxLagSeconds && { maxLagSeconds: numOf(item, 'maxLagSeconds') }),
})

export const itemOfQueue = (queue: Queue): Item => ({
  ...itemKey(keys.queue(queue.topicName, queue.queueId)),
  topicName: str(queue.topicName),
  queueId: num(queue.queueId),
  ...(queue.readOnlySinceMs !== undefined && { readOnlySinceMs: num(queue.readOnlySinceMs) }),
  checkpoint: num(queue.checkpoint),
})

export const queueOf = (item: Item): Queue => ({
  topicName: strOf(item, 'topicName'),
  queueId: numOf(item, 'queueId'),
  ...(item.readOnlySinceMs && { readOnlySinceMs: numOf(item, 'readOnlySinceMs') }),
  checkpoint: numOf(item, 'checkpoint'),
})

/** The settings alone, by attribute name: they are also replaced alone. */
export const groupSettingsAttributes = (settings: GroupSettings): Item => ({
  allowedIps: strList(settings.allowedIps),
  deniedIps: strList(settings.deniedIps),
  maxConsumers: num(settings.maxConsumers),
})

const originAttributes = (origin: Origin): Item => ({
  originName: str(origin.groupName),
  ...('consumerId' in origin ? { originConsumerId: num(origin.consumerId) } : { subEnv: str(origin.subEnv) }),
})

function originOf(item: Item): { origin?: Origin } {
  if (!item.originName) return {}
  const groupName = strOf(item, 'originName')
  if (item.originConsumerId) return { origin: { groupName, consumerId: numOf(item, 'originConsumerId') } }
  return { origin: { groupName, subEnv: strOf(item, 'subEnv') } }
}

export const itemOfCopy = (copyName: string, origin: Origin): Item => ({
  ...itemKey(keys.copy(origin.groupName, copyName)),
  copyName: str(copyName),
  ...originAttributes(origin),
})

export const groupCopyOf = (item: Item): GroupCopy => ({
  copyName: strOf(item, 'copyName'),
  ...(item.originConsumerId && { consumerId: numOf(item, 'originConsumerId') }),
  ...(item.subEnv && { subEnv: strOf(item, 'subEnv') }),
})

export const itemOfGroup = (group: Group): Item => ({
  ...itemKey(keys.group(group.name)),
  name: str(group.name),
  mode: str(group.mode),
  ...groupSettingsAttributes(group),
  ...(group.origin && originAttributes(group.origin)),
  rbVersion: num(group.rbVersion),
  metaVersion: num(group.metaVersion),
  version: num(group.version),
  rebalanceAsked: num(group.rebalanceAsked),
  rebalanceDone: num(group.rebalanceDone),
  rebalancedAtMs: num(group.rebalancedAtMs),
  rebalancedVersion: num(group.rebalancedVersion),
  createdAtMs: num(group.createdAtMs),
})

export const groupOf = (item: Item): Group => ({
  name: strOf(item, 'name'),
  mode: strOf(item, 'mode') as GroupMode,
  allowedIps: strListOf(item, 'allowedIps'),
  deniedIps: strListOf(item, 'deniedIps'),
  maxConsumers: numOf(item, 'maxConsumers'),
  ...originOf(item),
  rbVersion: numOf(item, 'rbVersion'),
  metaVersion: numOf(item, 'metaVersion'),
  version: numOf(item, 'version'),
  rebalanceAsked: numOf(item, 'rebalanceAsked'),
  rebalanceDone: numOf(item, 'rebalanceDone'),
  rebalancedAtMs: numOf(item, 'rebalancedAtMs'),
  rebalancedVersion: numOf(item, 'rebalancedVersion'),
  createdAtMs: numOf(item, 'createdAtMs'),
})

/** The settings alone, by attribute name: they are also replaced alone. */
export const settingsAttributes = (settings: SubscriptionSettings): Item => ({
  threadSize: num(settings.threadSize),
  consumerBatchSize: num(settings.consumerBatchSize),
  pullBatchSize: num(settings.pullBatchSize),
  maxPullTimeSeconds: num(settings.maxPullTimeSeconds),
  tag: str(settings.tag),
  delayProcessTimeSeconds: num(settings.delayProcessTimeSeconds),
  timeoutSeconds: num(settings.timeoutSeconds),
  retryCount: num(settings.retryCount),
  retryDelaySeconds: num(settings.retryDelaySeconds),
  retryBackoffRate: num(settings.retryBackoffRate),
  maxRetryDelaySeconds: num(settings.maxRetryDelaySeconds),
  retryInPlace: bool(settings.retryInPlace),
  trace: bool(settings.trace),
  maxLag: num(settings.maxLag),
  maxLagSeconds: num(settings.maxLagSeconds),
})

export function itemOfSubscription(subscription: Subscription): Item {
  const { groupName, topicName, topicId, failTopicId } = subscription
  const { maxLag, maxLagSeconds, ...settings } = settingsAttributes(subscription)
  return {
    ...itemKey(keys.subscription(groupName, topicName)),
    groupName: str(groupName),
    topicName: str(topicName),
    topicId: num(topicId),
    ...(failTopicId !== undefined && { failTopicId: num(failTopicId) }),
    ...settings,
    // Few have limits, and each reader of a group pays for all of its subscriptions.
    ...(subscription.maxLag > 0 && maxLag && { maxLag }),
    ...(subscription.maxLagSeconds > 0 && maxLagSeconds && { maxLagSeconds }),
  }
}

export const subscriptionOf = (item: Item): Subscription => ({
  groupName: strOf(item, 'groupName'),
  topicName: strOf(item, 'topicName'),
  topicId: numOf(item, 'topicId'),
  ...(item.failTopicId && { failTopicId: numOf(item, 'failTopicId') }),
  threadSize: numOf(item, 'threadSize'),
  consumerBatchSize: numOf(item, 'consumerBatchSize'),
  pullBatchSize: numOf(item, 'pullBatchSize'),
  maxPullTimeSeconds: numOf(item, 'maxPullTimeSeconds'),
  tag: strOf(item, 'tag'),
  delayProcessTimeSeconds: numOf(item, 'delayProcessTimeSeconds'),
  timeoutSeconds: numOf(item, 'timeoutSeconds'),
  retryCount: numOf(item, 'retryCount'),
  retryDelaySeconds: numOf(item, 'retryDelaySeconds'),
  retryBackoffRate: numOf(item, 'retryBackoffRate'),
  maxRetryDelaySeconds: numOf(item, 'maxRetryDelaySeconds'),
  retryInPlace: boolOf(item, 'retryInPlace'),
  trace: boolOf(item, 'trace'),
  maxLag: item.maxLag ? numOf(item, 'maxLag') : 0,
  maxLagSeconds: item.maxLagSeconds ? numOf(item, 'maxLagSeconds') : 0,
})

export const itemOfQueueOffset = (offset: QueueOffset): Item => ({
  ...itemKey(keys.queueOffset(offset.groupName, offset.queueOffsetId)),
  groupName: str(offset.groupName),
  queueOffsetId: num(offset.queueOffsetId),
  topicName: str(offset.topicName),
  ...(offset.originTopicName !== undefined && { originTopicName: str(offset.originTopicName) }),
  queueId: num(offset.queueId),
  offset: num(offset.offset),
  offsetVersion: num(offset.offsetVersion),
  consumerId: num(offset.consumerId),
  isStopped: bool(offset.isStopped),
  rbVersion: num(offset.rbVersion),
  ...(offset.nextConsumerId !== undefined && { nextConsumerId: num(offset.nextConsumerId) }),
  ...(offset.leavingSinceMs !== undefined && { leavingSinceMs: num(offset.leavingSinceMs) }),
  ...(offset.claim && { claimant: str(offset.claim.claimant), claimedUntilMs: num(offset.claim.untilMs) }),
  ...(offset.committedAtMs !== undefined && { committedAtMs: num(offset.committedAtMs) }),
  ...(offset.deaths && { deaths: num(offset.deaths.count), deathVersion: num(offset.deaths.offsetVersion) }),
  ...(offset.trial && {
    trialOffset: num(offset.trial.offset),
    trialVersion: num(offset.trial.offsetVersion),
    trialFailures: num(offset.trial.failures),
  }),
})

export const queueOffsetOf = (item: Item): QueueOffset => ({
  groupName: strOf(item, 'groupName'),
  queueOffsetId: numOf(item, 'queueOffsetId'),
  topicName: strOf(item, 'topicName'),
  ...(item.originTopicName && { originTopicName: strOf(item, 'originTopicName') }),
  queueId: numOf(item, 'queueId'),
  offset: numOf(item, 'offset'),
  offsetVersion: numOf(item, 'offsetVersion'),
  consumerId: numOf(item, 'consumerId'),
  isStopped: boolOf(item, 'isStopped'),
  rbVersion: numOf(item, 'rbVersion'),
  ...(item.nextConsumerId && { nextConsumerId: numOf(item, 'nextConsumerId') }),
  ...(item.leavingSinceMs && { leavingSinceMs: numOf(item, 'leavingSinceMs') }),
  ...(item.claimant && { claim: { claimant: strOf(item, 'claimant'), untilMs: numOf(item, 'claimedUntilMs') } }),
  ...(item.committedAtMs && { committedAtMs: numOf(item, 'committedAtMs') }),
  ...(item.deaths && { deaths: { count: numOf(item, 'deaths'), offsetVersion: numOf(item, 'deathVersion') } }),
  ...(item.trialOffset && {
    trial: {
      offset: numOf(item, 'trialOffset'),
      offsetVersion: numOf(item, 'trialVersion'),
      failures: numOf(item, 'trialFailures'),
    },
  }),
})

/** All but the key: joining again changes them. */
export const memberAttributes = (member: Member): Item => ({
  groupName: str(member.groupName),
  consumerId: num(member.consumerId),
  consumerName: str(member.consumerName),
  ip: str(member.ip),
  ...(member.instanceId !== undefined && { instanceId: str(member.instanceId) }),
  ...(member.predecessors && { predecessors: numList(member.predecessors) }),
  topicNames: strList(member.topicNames),
  joinedAtMs: num(member.joinedAtMs),
  ...(member.hasStopped && { hasStopped: bool(true) }),
})

export const memberOf = (item: Item): Member => ({
  groupName: strOf(item, 'groupName'),
  consumerId: numOf(item, 'consumerId'),
  consumerName: strOf(item, 'consumerName'),
  ip: strOf(item, 'ip'),
  ...(item.instanceId && { instanceId: strOf(item, 'instanceId') }),
  ...(item.predecessors && { predecessors: numListOf(item, 'predecessors') }),
  topicNames: strListOf(item, 'topicNames'),
  joinedAtMs: numOf(item, 'joinedAtMs'),
  ...(item.hasStopped && { hasStopped: true }),
})

/** What a consumer says of itself, each time it registers. */
export const reportedAttributes = (consumer: Consumer): Item => ({
  ip: str(consumer.ip),
  sdkVersion: str(consumer.sdkVersion),
  lan: str(consumer.lan),
  heartbeatAtMs: num(consumer.heartbeatAtMs),
})

export const itemOfConsumer = (consumer: Consumer): Item => ({
  ...itemKey(keys.consumer(consumer.consumerId)),
  consumerId: num(consumer.consumerId),
  name: str(consumer.name),
  ...reportedAttributes(consumer),
  ...(consumer.groupNames.length > 0 && { groupNames: strSet(consumer.groupNames) }),
})

export const consumerOf = (item: Item): Consumer => ({
  consumerId: numOf(item, 'consumerId'),
  name: strOf(item, 'name'),
  ip: strOf(item, 'ip'),
  sdkVersion: strOf(item, 'sdkVersion'),
  lan: strOf(item, 'lan'),
  heartbeatAtMs: numOf(item, 'heartbeatAtMs'),
  groupNames: strSetOf(item, 'groupNames'),
})
