/**
 * Every limit of the service as one value. Refusals name the limit, the value and what would be accepted. Those that
 * follow from a limit of AWS say which.
 */
export const limits = {
  /** A message's body, in bytes of UTF-8. */
  maxBodyBytes: 256 * 1024,
  /** Messages in one publish. */
  maxMessagesPerPublish: 1000,
  /** A request body, in bytes (API Gateway takes 10 MB, a Lambda 6 MB of which base64 may take a third). */
  maxRequestBytes: 5 * 1024 * 1024,
  /** A message's head: entries, and bytes of its JSON text. */
  maxHeadKeys: 32,
  maxHeadBytes: 8 * 1024,
  /** Short texts of a message: tag, bizId, traceId, key; in characters. */
  maxTagLength: 1000,
  maxBizIdLength: 200,
  maxTraceIdLength: 200,
  maxKeyLength: 200,
  maxPublishIdLength: 64,
  /** A batch as stored, in bytes (a DynamoDB item may have 400 KB with its attribute names). */
  maxBatchBytes: 350 * 1024,
  /** The JSON text of one batch before compression; keeps what a reader must hold for one batch bounded. */
  maxBatchTextBytes: 1024 * 1024,
  /** One answer to a pull by size (a Lambda answers with 6 MB at most). */
  maxPullBytes: 4 * 1024 * 1024,
  /** Messages in one answer to a pull by offsets. */
  maxPullMessages: 1000,
  /** Queues of one topic. */
  maxQueuesPerTopic: 1000,
  minRetentionMs: 3_600_000,
  maxRetentionMs: 365 * 86_400_000,
  /** Names of topics and groups. In a path `.` and `..` are steps, which whoever sends it takes out. */
  namePattern: /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$/,
  /** The same in words. */
  nameRule: '1 to 100 characters of A-Z, a-z, 0-9, dot, underscore and hyphen, and neither "." nor ".."',
  /** The name of a group's copy for a sub-environment, in characters. */
  maxCopyNameLength: 250,
  /** Names that something can have: a fail topic's is made of two names, that of a copy of a group has a tilde. */
  anyNamePattern: /^[A-Za-z0-9._~-]{1,360}$/,
  maxAnyNameLength: 360,
  maxConsumerNameLength: 200,
  maxConsumersPerGroup: 100_000,
  /** Entries of a group's list of addresses, and their length (an IPv6 range). */
  maxIpRanges: 100,
  maxIpRangeLength: 49,
  maxGroupsPerConsumer: 100,
  /** Names or ids in one request that asks about several things, or joins with several topics. */
  maxNamesPerRequest: 1000,
  /** How long a claim lasts (a Lambda function ends within 15 minutes), and how many queues one request takes. */
  minLeaseMs: 1_000,
  maxLeaseMs: 900_000,
  maxQueuesPerClaim: 100,
  /** Entries of one commit: each is a write. */
  maxCommitsPerRequest: 10_000,
  maxThreadSize: 50,
  maxConsumerBatchSize: 500,
  maxMaxPullTimeSeconds: 60,
  /** A subscription's list of tags, in characters. */
  maxTagListLength: 1000,
  /** Delays and time-outs of a subscription: half a day. */
  maxDelaySeconds: 43_200,
  maxRetryCount: 100,
  maxRetryBackoffRate: 10,
  /** Entries in one answer of the audit log. */
  maxAuditEntries: 100,
  /** What an entry shows of a request, and of what was there before and after, each (a DynamoDB item may have 400 KB). */
  maxAuditTextBytes: 100 * 1024,
  /** Longer than a year, so that who looks at a year's end finds all of it. (PMQ keeps 30 days.) */
  auditKeptMs: 400 * 86_400_000,
  /** Times in requests: until the year 9999. */
  maxTimeMs: 253_402_300_799_999,
  /** Alarms in one answer: 2 MB, where all names are as long as they may be. */
  maxAlarmsPerPage: 1000,
  /** What is kept of how a message failed, in characters. */
  maxErrorLength: 1000,
  maxErrorKindLength: 30,
  /** Why a dead letter was dropped, in characters. */
  maxReasonLength: 500,
  /** Failed messages in one answer, and in one request that resends or drops; each is a write or two. */
  maxFailedPerPage: 100,
  maxFailedPerChange: 500,
  /** Targets of a group, and of alarms; secrets of one while they are rotated. */
  maxTargets: 10,
  maxSecrets: 5,
  /** An ARN of a Lambda function with a qualifier. */
  maxFunctionNameLength: 170,
  /** The least time between two hints, in milliseconds: an hour. */
  maxTargetGapMs: 3_600_000,
  maxDeliveriesPerPage: 100,
  /** Queues that are told of when a target is enabled; the tick tells of the others. */
  maxQueuesToldAtOnce: 100,
  /** Records of failed messages that one request looks at: some 250 read units, at 1 KB each. */
  maxFailedExamined: 1000,
} as const
