/**
 * The records that the service keeps, as the core sees them. Both stores hold exactly these; how they lay them out is
 * their own business. Times are milliseconds since 1970.
 */

/** How a batch's text is stored. A number, since every item pays for it. */
export type Codec = 0 | 1 | 2

/** What is known of a batch without its messages. */
export type BatchHeader = {
  queueId: number
  /** Offset of its first message. */
  base: number
  /** Number of messages: the batch holds the offsets `base` to `base + count - 1`. */
  count: number
  /** Names the publish that it came from; the same for each attempt. */
  publishId: string
  appendedAtMs: number
  /** End of retention: from then on readers treat the batch as gone. */
  expiresAtMs: number
}

/** The unit of the log: messages that were appended together, immutable once stored. */
export type Batch = BatchHeader & { codec: Codec; bytes: Uint8Array }

export type Topic = {
  name: string
  topicId: number
  retentionMs: number
  createdAtMs: number
  /** It is a fail topic: it takes what this group fails to handle of this topic, and nothing else. */
  failOf?: { groupName: string; topicName: string }
  /** Limits of what may wait for a group: messages, and for how long. Absent: none. What a subscription says goes before. */
  maxLag?: number
  maxLagSeconds?: number
  /** How often queues were added: who adds some has to have seen all that are there. Absent: never. */
  additions?: number
}

export type Queue = {
  topicName: string
  queueId: number
  /** Since when it is read-only: nothing is appended any more, what is there is consumed. Absent: it is writable. */
  readOnlySinceMs?: number
  /** The next offset as last checkpointed: what remains of the head when every batch is past retention. 1 for a new queue. */
  checkpoint: number
}

/** A topic with its queues in order of creation, the groups that subscribe to it, and those of them that have targets. */
export type TopicSnapshot = { topic: Topic; queues: Queue[]; groupNames: string[]; notifies: string[] }

/**
 * How a group shares its queues out. `balanced`: among its members, who hold a queue for as long as they live. `claimed`:
 * to whoever claims some, for the time of a lease. `broadcast`: not at all; each member has a copy of the group, with
 * offsets of its own, and gets everything.
 */
export type GroupMode = 'balanced' | 'claimed' | 'broadcast'

/** Who of a group's members may be given queues. Those who may not are on standby. */
export type GroupSettings = {
  /** IP addresses and ranges (CIDR) that may; empty: all. */
  allowedIps: string[]
  /** IP addresses and ranges that may not, whatever is allowed. */
  deniedIps: string[]
  /** So many members at most, the ones that joined first; 0: any number. */
  maxConsumers: number
}

/** What a group is a copy of: of another group for one sub-environment, or of a broadcast group for one consumer. */
export type Origin = { groupName: string; subEnv: string } | { groupName: string; consumerId: number }

/** A group that was made as a copy of another one, as the other one's partition lists it. */
export type GroupCopy = { copyName: string; subEnv?: string; consumerId?: number }

/**
 * A consumer group. `rbVersion` rises when an assignment changes, `metaVersion` when settings or offsets do, `version`
 * with either; they never fall. A rebalance is owed while `rebalanceAsked > rebalanceDone`.
 */
export type Group = GroupSettings & {
  name: string
  mode: GroupMode
  /** Absent: the group was made by hand. */
  origin?: Origin
  rbVersion: number
  metaVersion: number
  version: number
  rebalanceAsked: number
  rebalanceDone: number
  /** When `rbVersion` last rose, and what `version` was then: a consumer that presents it has been told every move. */
  rebalancedAtMs: number
  rebalancedVersion: number
  createdAtMs: number
}

/** How a group's consumers work through a topic. What each means is with `subscribeRequest` in `core/protocol/admin.ts`. */
export type SubscriptionSettings = {
  threadSize: number
  consumerBatchSize: number
  pullBatchSize: number
  maxPullTimeSeconds: number
  tag: string
  delayProcessTimeSeconds: number
  timeoutSeconds: number
  retryCount: number
  retryDelaySeconds: number
  retryBackoffRate: number
  maxRetryDelaySeconds: number
  retryInPlace: boolean
  trace: boolean
  maxLag: number
  maxLagSeconds: number
}

export type Subscription = SubscriptionSettings & {
  groupName: string
  topicName: string
  topicId: number
  /** Its fail topic, which the group works through as well. Absent: it has none. */
  failTopicId?: number
}

/**
 * A group's place in one queue, and who owns the queue. `offsetVersion` rises with each change of owner.
 *
 * | state | means | leaves by |
 * |---|---|---|
 * | free: `consumerId` is 0 | nobody owns it | assigned → owned |
 * | owned | the consumer pulls and commits with `offsetVersion` | taken away → leaving; the owner is gone → owned by another, or free |
 * | leaving: `nextConsumerId` is there | the owner may finish and commit, the next one waits | released, or the owner is gone or late → owned by the next one, or free; wanted back → owned |
 * | claimed: `claim` is there | the claimant pulls and commits with `offsetVersion` until its lease ends | released → free; the lease is over → claimed by another; reset → free |
 *
 * In a copy for one consumer a queue is owned from the beginning, by that consumer.
 */
export type QueueOffset = {
  groupName: string
  queueOffsetId: number
  topicName: string
  /** Of a queue of a fail topic: the topic whose failures are in it, by whose subscription the group has this place. */
  originTopicName?: string
  queueId: number
  /** The last offset that the group has finished with. */
  offset: number
  offsetVersion: number
  /** The owner; 0: nobody. */
  consumerId: number
  /** Who owns the queue when its present owner has released it; 0: nobody. Absent: it is not leaving. */
  nextConsumerId?: number
  /** When it was taken away from its owner. */
  leavingSinceMs?: number
  /** Who holds it by a lease. Once that is over, it is still theirs until somebody else claims it. */
  claim?: Claim
  /** When progress was last committed. Absent: never. */
  committedAtMs?: number
  /** Owners that were lost while `offset` stayed where it is. Absent: none was. */
  deaths?: Deaths
  /** The message that an owner said it has in hand alone. It is the suspect once that owner was lost (`deaths.ts`). */
  trial?: Trial
  /** Nobody consumes the queue for this group until it is started again; who owns it is another matter. */
  isStopped: boolean
  /** The group's `rbVersion` that tells of this state. Above the group's own: a rebalance moved it and did not finish. */
  rbVersion: number
}

export type Claim = { claimant: string; untilMs: number }

/** How many owners in a row were lost, and which `offsetVersion` the last of them had. */
export type Deaths = { count: number; offsetVersion: number }

/**
 * One message, and the `offsetVersion` of the owner that has it on trial. `failures`: how often it had failed where it is
 * when that owner began, by what is known of those who were lost with it.
 */
export type Trial = { offset: number; offsetVersion: number; failures: number }

/** A consumer's membership in one group. */
export type Member = {
  groupName: string
  consumerId: number
  consumerName: string
  ip: string
  /** The place that it takes, across restarts. */
  instanceId?: string
  /** Whose place it took: their queues are its own. */
  predecessors?: number[]
  /** Topics that it has a handler for. */
  topicNames: string[]
  joinedAtMs: number
  /** It has stopped in order, and keeps its place for the next one of its `instanceId`. */
  hasStopped?: boolean
}

/** A running client. Alive while its heartbeat is recent. */
export type Consumer = {
  consumerId: number
  name: string
  ip: string
  sdkVersion: string
  lan: string
  heartbeatAtMs: number
  /** Groups that it has joined, sorted. A group that it was taken out of stays here: its `Member` record decides. */
  groupNames: string[]
}

/** All of a group, as one read returns it. */
export type GroupSnapshot = {
  group: Group
  subscriptions: Subscription[]
  offsets: QueueOffset[]
  members: Member[]
  /** Consumers that were members and were lost. They are forgotten once no queue is theirs any more. */
  lost: number[]
  copies: GroupCopy[]
}

/** Ids on the wire are numbers; each kind counts for itself. */
export type IdKind = 'topic' | 'queue' | 'queueOffset' | 'consumer'
