import type { AlarmStore } from './alarms/port.ts'
import type { AuditStore } from './audit/port.ts'
import type { FailedStore } from './failed/port.ts'
import type {
  Batch,
  BatchHeader,
  Consumer,
  Group,
  GroupSettings,
  GroupSnapshot,
  IdKind,
  Member,
  Queue,
  QueueOffset,
  Subscription,
  SubscriptionSettings,
  Topic,
  TopicSnapshot,
} from './model.ts'
import type { TargetStore } from './notify/port.ts'

/**
 * The store port: what the core asks of a memory. Each operation is atomic and answers with an outcome; the algorithms
 * stand above it, so every store runs the same ones. `test/store/contract.ts` is its specification.
 *
 * Any operation may throw a `StoreError`. After `unavailable` a write may have been applied, so that calling again may
 * answer `exists`, `not_a_member`, `conflict` or `fenced` for the caller's own write: take these as "done, maybe by me".
 */
export interface Store extends LogStore, RegistryStore, AuditStore, FailedStore, TargetStore, AlarmStore {
  close(): Promise<void>
}

export interface LogStore {
  /**
   * True when operations take effect in the order of the calls, and a later one never without the earlier ones (one
   * process, one transaction log). An appender then need not await an answer before it appends behind it.
   */
  readonly appendsInOrder: boolean

  /**
   * Put-if-absent of a batch at its `base`. `taken` names the batch that is there: at this base, or (in a store that
   * can tell) the last one, if the base is not where it ends. `unknown`: it may or may not have been stored.
   */
  appendBatch(batch: Batch): Promise<AppendOutcome>

  /**
   * Batches of a queue in offset order, from the first whose base is `>= fromOffset`. Stops before a batch that would
   * pass `maxBatches`, or once `maxBytes` of stored bytes have been read. Not consistent: may miss what is recent.
   */
  readBatches(query: BatchQuery): Promise<Batch[]>

  /** The last batch whose base is `<= offset`, or undefined. It need not reach as far as `offset`. */
  readBatchAt(queueId: number, offset: number, options: { consistent: boolean }): Promise<Batch | undefined>

  /** Headers in offset order from `fromOffset` on, or against it from `fromOffset` down. */
  readHeaders(query: HeaderQuery): Promise<BatchHeader[]>
}

export type AppendOutcome =
  | { outcome: 'stored' }
  | { outcome: 'taken'; winner: BatchHeader }
  | { outcome: 'throttled' }
  | { outcome: 'unknown'; cause: unknown }

export type BatchQuery = {
  queueId: number
  fromOffset: number
  maxBatches: number
  maxBytes: number
  consistent: boolean
}

export type HeaderQuery = {
  queueId: number
  fromOffset: number
  direction: 'forward' | 'backward'
  limit: number
  consistent: boolean
}

/** DynamoDB writes up to 100 items in one transaction. */
export const maxQueuesAtOnce = 90

/**
 * For so long after the removal of a topic there is none of its name: containers remember a topic for seconds, and an append
 * that began before that takes seconds. What they append goes to queues that nobody reads.
 */
export const nameRestMs = 60_000

/** What is left of a topic is removed some time after it has no meaning any more. */
export const removalKeptMs = 86_400_000

export interface RegistryStore {
  /** Takes `count` fresh ids; returns the first of them. Ids start at 1 and are never given out twice. */
  takeIds(kind: IdKind, count: number): Promise<number>

  /**
   * Creates a topic with its first queues, at most `maxQueuesAtOnce`, unless there is one of this name. `removed_lately`:
   * one of this name was removed within `nameRestMs` before.
   */
  createTopic(topic: Topic, queues: readonly Queue[]): Promise<'created' | 'exists' | 'removed_lately'>
  /** Sets limits of a topic, 0: none; what is not given stays. */
  updateTopic(topicName: string, limits: Pick<Topic, 'maxLag' | 'maxLagSeconds'>): Promise<'updated' | 'unknown_topic'>
  /**
   * Adds queues to a topic that is not being removed, all or none, at most `maxQueuesAtOnce`; with `additions` only if nobody
   * has added any since the caller read the topic. `conflict`: somebody has, or one of them is there.
   */
  addQueues(
    topicName: string,
    queues: readonly Queue[],
    additions?: number,
  ): Promise<'added' | 'conflict' | 'unknown_topic'>
  /**
   * Begins to remove a topic: from then on nobody can subscribe to it or add queues, until this is cancelled. `removal` is
   * unique; who begins later takes over.
   */
  beginTopicRemoval(topicName: string, removal: string): Promise<'begun' | 'unknown_topic'>
  /** Leaves a topic as it is, unless another removal has begun since. */
  cancelTopicRemoval(topicName: string, removal: string): Promise<void>
  /** Removes queues of a topic that is being removed, whether they are read-only or not; at most `maxQueuesAtOnce`. */
  removeTopicQueues(topicName: string, removal: string, queueIds: readonly number[]): Promise<'removed' | 'overtaken'>
  /** Removes a topic that has no queues and groups any more. What was in it is left to the end of its retention. */
  removeTopic(topicName: string, removal: string, nowMs: number): Promise<'removed' | 'overtaken'>
  /** Makes a queue read-only from `sinceMs` on, or writable again (undefined). One that is read-only already stays so. */
  setReadOnly(topicName: string, queueId: number, sinceMs: number | undefined): Promise<'set' | 'unknown_queue'>
  /**
   * Removes a queue that is read-only, with `sinceMs` only if it has been so since then: one that was writable in between
   * may have got messages. What is in it is left to the end of its retention.
   */
  removeQueue(topicName: string, queueId: number, sinceMs?: number): Promise<'removed' | 'writable' | 'unknown_queue'>
  readTopic(topicName: string): Promise<TopicSnapshot | undefined>
  /** Names in order, after `after`, at most `limit`. */
  listTopics(page: { after?: string; limit: number }): Promise<string[]>
  /** Records a queue's next offset, if it is greater than the recorded one. */
  checkpointQueue(
    topicName: string,
    queueId: number,
    nextOffset: number,
  ): Promise<'advanced' | 'unchanged' | 'unknown_queue'>

  /** Creates a group, unless there is one of this name. A copy is recorded at its origin, which has to exist. */
  createGroup(group: Group): Promise<'created' | 'exists' | 'unknown_origin'>
  /** Replaces who of a group's members may be given queues; raises `metaVersion`, `version` and `rebalanceAsked`. */
  updateGroup(groupName: string, settings: GroupSettings): Promise<'updated' | 'unknown_group'>
  /**
   * Forgets a group whose subscriptions and queue offsets have been removed before, and that it was a copy. `conflict`: it
   * is not as the caller read it; somebody has joined it perhaps, or subscribed it to a topic.
   */
  removeGroup(group: Group): Promise<'removed' | 'unknown_group' | 'conflict'>
  /** Names in order, after `after`, at most `limit`. Copies for one consumer are not among them. */
  listGroups(page: { after?: string; limit: number }): Promise<string[]>
  /** Everything of a group in one consistent read. */
  readGroup(groupName: string): Promise<GroupSnapshot | undefined>
  /** What a group subscribes to. */
  readSubscriptions(groupName: string): Promise<Subscription[]>
  /** The group's own record. Not consistent. */
  readGroupRecord(groupName: string): Promise<Group | undefined>
  /**
   * Subscribes: records the subscription, and the group at its topic and its fail topic, raises `metaVersion`, `version` and
   * `rebalanceAsked`, and wakes the group. Its queue offsets come by `addQueueOffset`, before. Of a copy for one consumer
   * nothing is recorded at the topic, and nothing is asked: it is looked after with its origin. `unknown_topic`: one of the
   * topics is being removed, or was.
   */
  createSubscription(
    subscription: Subscription,
    kind?: GroupKind,
  ): Promise<'created' | 'exists' | 'unknown_group' | 'unknown_topic'>
  /** Ends a subscription; raises, asks and wakes as `createSubscription` does. Its queue offsets go after. */
  removeSubscription(
    groupName: string,
    topicName: string,
    kind?: GroupKind,
  ): Promise<'removed' | 'unknown_subscription'>
  /**
   * Replaces the settings of a subscription, and raises `metaVersion` and `version`. With a `failTopicId` it gets a fail
   * topic, if it has none; raises, asks and wakes then as `createSubscription` does.
   */
  updateSubscription(
    groupName: string,
    topicName: string,
    change: SubscriptionSettings & Pick<Subscription, 'failTopicId'>,
  ): Promise<'updated' | 'unknown_subscription' | 'unknown_topic'>
  /** A group's place in a queue, as it is now. */
  readQueueOffset(place: QueuePlace): Promise<QueueOffset | undefined>
  /** Adds a group's place in a queue. `exists` if the group has one for this queue, whatever its id. */
  addQueueOffset(offset: QueueOffset): Promise<'created' | 'exists' | 'unknown_group'>
  /**
   * Removes a group's place in a queue, if the group does not have the subscription any more by which it has it, or the
   * topic has no such queue.
   */
  removeQueueOffset(offset: QueueOffset, because: OffsetRemoval): Promise<'removed' | 'needed'>
  /** Raises `rebalanceAsked`, and wakes the group for the tick. Answers with the group as it is then. */
  askRebalance(groupName: string): Promise<Group | undefined>
  /** Raises `metaVersion` and `version`: offsets or settings have changed. Answers with the group as it is then. */
  raiseMeta(groupName: string): Promise<Group | undefined>
  /**
   * Closes a rebalance that answered `asked`; raises `rbVersion` and `version` if it moved anything. `asked_again`: it is
   * closed, and more has been asked meanwhile.
   */
  finishRebalance(done: RebalanceDone): Promise<'done' | 'asked_again' | 'conflict'>
  /** Groups that the tick has to look at: a rebalance was asked for, or they have members. */
  listAwakeGroups(): Promise<AwakeGroup[]>
  /** Lets a group sleep, unless it was asked something since. */
  sleepGroup(group: AwakeGroup): Promise<void>

  /** Changes who owns a queue or will own it, if it is as the caller read it. */
  moveQueue(move: QueueMove): Promise<'moved' | 'conflict'>
  /**
   * Records progress: only forward, only for the owner of this `offsetVersion`; where there is some, `deaths` and trial are
   * over. A release of a queue that is leaving also hands it over, and raises the group's `rbVersion` and `version` with
   * it, so that the next owner hears of it.
   */
  commitOffset(commit: Commit): Promise<CommitOutcome>
  /**
   * Sets a queue's offset, forwards or back, and raises its `offsetVersion`, which fences what its owner has in hand. The
   * owner stays, and the group's `metaVersion` and `version` rise, so that it hears of it; a claim ends.
   */
  resetOffset(place: QueuePlace, offset: number): Promise<'reset' | 'unknown_queue'>
  /** Stops a queue for a group, or starts it again; the group's `metaVersion` and `version` rise. */
  setStopped(place: QueuePlace, isStopped: boolean): Promise<'set' | 'unknown_queue'>
  /** Claims a queue that nobody holds by a lease; raises its `offsetVersion`, which fences whoever held it before. */
  claimQueue(claim: QueueClaim): Promise<{ outcome: 'claimed'; offset: QueueOffset } | { outcome: 'conflict' }>
  /** Sets until when a claim lasts, over or not, that nobody else has taken since. Answers with the queue as it is then. */
  renewClaim(renewal: ClaimRenewal): Promise<{ outcome: 'renewed'; offset: QueueOffset } | { outcome: 'fenced' }>

  /** Records a new consumer, or finds the one of its name and takes over all but its id and groups. Answers with its id. */
  registerConsumer(consumer: Consumer): Promise<number>
  readConsumers(consumerIds: number[]): Promise<Consumer[]>
  /** Renews a heartbeat. Undefined: the consumer is not known (any more). */
  heartbeat(consumerId: number, nowMs: number): Promise<Consumer | undefined>
  /** Consumers that have registered and joined no group yet. */
  listNewcomers(): Promise<number[]>
  /**
   * Records the member, and the group at its consumer; who joins again keeps its `joinedAtMs`. Nothing of the group's own
   * is written, so that a thousand may join at once: `askRebalance` comes after.
   */
  joinGroup(member: Member): Promise<'joined' | 'unknown_consumer'>
  /** Removes the member, or forgets that it was lost. `askRebalance` comes after. */
  leaveGroup(groupName: string, consumerId: number): Promise<'left' | 'not_a_member'>
  /** Notes that a member has stopped in order and keeps its place. Joining again ends that. */
  stopMember(groupName: string, consumerId: number): Promise<'noted' | 'not_a_member'>
  /**
   * Removes a member that was given up, and remembers until `leaveGroup` that it was lost: what is taken from it is taken
   * from the dead. One that had stopped in order leaves. `askRebalance` comes after.
   */
  loseMember(groupName: string, consumerId: number): Promise<'lost' | 'left' | 'not_a_member'>
  /** Forgets a consumer; with `heartbeatBeforeMs` only if its last heartbeat is older. Answers with what it was. */
  removeConsumer(consumerId: number, options?: { heartbeatBeforeMs: number }): Promise<Consumer | undefined>
}

/** `expected` are the versions that the run has read: a run that something overtook must not close. */
export type RebalanceDone = {
  groupName: string
  asked: number
  moved: boolean
  expectedRbVersion: number
  nowMs: number
}

/** `asked` is the store's own: it is another number after each time that the group was asked something. */
export type AwakeGroup = { groupName: string; asked: number }

/** A copy for one consumer is nobody's concern but its origin's. Where it isn't said, a group is a `group`. */
export type GroupKind = 'group' | 'consumer_copy'

export type OffsetRemoval = 'unsubscribed' | 'queue_removed'

/** One queue of a group. */
export type QueuePlace = { groupName: string; queueOffsetId: number }

export type QueueMove = {
  groupName: string
  queueOffsetId: number
  /** What the caller read: the move is refused if anything has changed since. */
  expectedOffsetVersion: number
  expectedConsumerId: number
  expectedNextConsumerId: number | undefined
  /** The owner from now on; 0: nobody. Where it is another than before, `offsetVersion` rises and fences the former. */
  consumerId: number
  /** The owner may finish, and then the queue is this one's. */
  leaving?: { nextConsumerId: number; sinceMs: number }
  /** The queue is taken from an owner that was lost. @default false */
  ownerIsLost?: boolean
  /**
   * The `rbVersion` by which the group will tell of the move: the move is refused unless it is the next one. A run that
   * another has overtaken could die with its moves untold.
   */
  rbVersion: number
}

export type QueueClaim = QueuePlace & {
  /** What the claimant read: the claim is refused if anybody has claimed, released or reset the queue since. */
  expectedOffsetVersion: number
  claimant: string
  /** A lease in the claimant's own name is no obstacle: it did not hear of it. @default false */
  retakes?: boolean
  /** The queue is taken from a claimant who let his lease end without a release. @default false */
  ownerIsLost?: boolean
  untilMs: number
  /** A lease that is over by then is no obstacle. */
  nowMs: number
}

export type ClaimRenewal = QueuePlace & { offsetVersion: number; untilMs: number }

export type Commit = {
  groupName: string
  queueOffsetId: number
  offsetVersion: number
  offset: number
  /**
   * The final commit: the owner has stopped, and gives its present ownership up. `offsetVersion` rises, also where the
   * offset stays. A queue that is leaving becomes the next owner's, one that is claimed is free; another one stays.
   */
  release: boolean
  /**
   * The owner has nothing in hand but this message; 0: none is on trial any more. Counts also where the offset stays, and
   * not with a release. Absent: it works as usual.
   */
  trialOffset?: number
  /** How often that one has failed before where it is. @default 0 */
  trialFailures?: number
  nowMs: number
}

export type CommitOutcome =
  | { outcome: 'advanced'; offset: number; offsetVersion: number; handedOver: boolean }
  | { outcome: 'unchanged'; offset: number; offsetVersion: number; handedOver: boolean }
  | { outcome: 'fenced'; offset: number; offsetVersion: number }
  | { outcome: 'unknown_queue' }

/**
 * The store could not do what it was asked. `throttled`: it refused, nothing was written. `unavailable`: it did not
 * answer, or failed; whether a write happened is unknown.
 */
export class StoreError extends Error {
  override name = 'StoreError' as const
  readonly kind: 'throttled' | 'unavailable'

  constructor(kind: 'throttled' | 'unavailable', message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}
