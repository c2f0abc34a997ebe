import type { LRUCache } from 'lru-cache'
import { listAll } from './admin/list.ts'
import { type Arrivals, createArrivals, groupArrival } from './arrivals.ts'
import { readSubEnvs } from './client/sub-envs.ts'
import { createSilenceWatch, type SilenceWatch } from './group/silence.ts'
import { type Appender, createAppender } from './log/append.ts'
import type { Compression } from './log/encoding.ts'
import { findEnd } from './log/log-end.ts'
import { createLogReader, type LogReader } from './log/read.ts'
import { readHeads } from './log/resume.ts'
import { createLru } from './lru.ts'
import type { Group, Subscription, TopicSnapshot } from './model.ts'
import type { Notice, QueueOfTopic } from './notices.ts'
import { createAnnouncer } from './notify/announce.ts'
import { publicTargets, type TargetPolicy } from './notify/network-policy.ts'
import type { Clock } from './protocol/clock.ts'
import { createSnapshots, type Snapshots } from './snapshots.ts'
import type { Store } from './store.ts'
import { createLogWatch, type LogWatch } from './tick/log-watch.ts'
import { createLooks, type Looks } from './tick/looks.ts'

/** Carries word of what happened to whoever acts on it without being called: EventBridge, or the process itself. */
export type Bus = {
  /** A group owes a rebalance. Losing it costs time only: the tick finds the group. */
  groupChanged(groupName: string): Promise<void>
  /** Never rejects: word that could not be sent must not fail what it tells of. `lost`: it could not. */
  tell(notice: Notice): Promise<'lost' | undefined>
}

export type Settings = {
  compression: Compression
  /** IANA name of the zone in which `sendTime` is written for PMQ's clients. */
  timeZone: string
  /** How long a poll of a group is held while nothing changes. PMQ's clients poll again at once. */
  pollHoldMs: number
  /** How long a pull may be held while there is no message. 0 where waiting is paid for. */
  pullHoldMs: number
  /** A consumer whose last heartbeat is older is given up. Three heartbeats. */
  sessionTimeoutMs: number
  /** How long a consumer may take to finish with a queue that goes to another one, where its handler has no time-out. */
  handoverTimeoutMs: number
  /** Whether consumers may belong to sub-environments, which have copies of the groups that they join. */
  subEnvironments: boolean
  targets: TargetPolicy
  /** How old a topic, or a group's versions, may be when a request uses them. */
  topicCacheMs: number
  groupCacheMs: number
  /** Bound of the cache of batches, in characters. */
  batchCacheTextLength: number
}

export const defaultSettings: Settings = {
  compression: 'small',
  timeZone: 'UTC',
  pollHoldMs: 5_000,
  pullHoldMs: 0,
  sessionTimeoutMs: 30_000,
  handoverTimeoutMs: 60_000,
  subEnvironments: false,
  targets: { network: publicTargets, functions: [] },
  topicCacheMs: 2_000,
  groupCacheMs: 1_000,
  batchCacheTextLength: 32 * 1024 * 1024,
}

export type CoreDeps = {
  store: Store
  clock: Clock
  random: () => number
  /** A new unique id, short since batches store it. */
  newId: () => string
  /** A new secret of Standard Webhooks: `whsec_` and base64 of random bytes. */
  newSecret: () => string
  bus: Bus
  settings: Settings
  /** Hears of messages that have become dead letters, so that somebody looks at them. One may be told of twice. */
  onDeadLetters?: (deadLetters: DeadLetters) => void
}

/** How many messages of a topic a group has just failed to handle for the last time. */
export type DeadLetters = { groupName: string; topicName: string; count: number }

/** What the use cases share within one container: the store, and what may be remembered of it between requests. */
export type Core = CoreDeps & {
  append: Appender
  /** The offset that a queue's next message will get; read from the store. */
  findEnd: (topicName: string, queueId: number) => Promise<number>
  reader: LogReader
  arrivals: Arrivals
  /** Says that a queue of a topic with hints has got messages. Never rejects. */
  announce: (queue: QueueOfTopic) => Promise<void>
  topics: Remembered<TopicSnapshot>
  groups: Remembered<Group>
  /** What groups subscribe to. */
  subscriptions: Remembered<Subscription[]>
  snapshots: Snapshots
  /** Group → the sub-environments that have consumers in it. */
  subEnvs: Remembered<string[]>
  /** Topic → where its unkeyed messages went last. */
  lastQueues: Map<string, LastQueue>
  /** By id of the queue offset and name of the group: the queue that it is for. */
  queueNames: LRUCache<string, QueueName>
  /** By id of the queue offset and name of the group: the highest `offsetVersion` that this container has met. */
  offsetVersions: LRUCache<string, number>
  /** Group → the version at which this container has seen that no queue of it is leaving its owner. */
  settledVersions: LRUCache<string, number>
  /** Which consumers this container has met silent. */
  silences: SilenceWatch
  /** When this container looks at groups' lag. */
  looks: Looks
  /** What it has seen of logs when it did. */
  logWatch: LogWatch
  /** Names of all topics and groups, as they were minutes ago, and topics as they were an hour ago: for what has time. */
  names: Remembered<string[], 'topic' | 'group'>
  oldTopics: Remembered<TopicSnapshot>
  /** Group → when this container last looked for dead members. */
  expiryCheckedAtMs: Map<string, number>
}

export type QueueName = { topicName: string; queueId: number }

/**
 * The queue that unkeyed messages of a topic went to last. They go to another one each time, so that every consumer of a
 * group has something to do; but who had to yield to other publishers stays where there was room, until `settledUntilMs`.
 */
export type LastQueue = { queueId: number; settledUntilMs: number }

export function createCore(deps: CoreDeps): Core {
  const { store, clock, random, settings } = deps
  const arrivals = createArrivals(clock)
  const groups = remember(clock, settings.groupCacheMs, name => store.readGroupRecord(name))
  // A batch outlives its retention by a day, so that what was committed a moment ago is no news to an empty log. Many
  // queues of a topic that are asked at once share one look.
  const heads = remember(clock, headsLifeMs, name => readHeads(store, name))
  const appendDeps = {
    store,
    clock,
    random,
    resumeAt: async (topicName: string, queueId: number, deep: boolean) => {
      if (deep) return (await heads.get(topicName))?.get(queueId) ?? 1
      const topic = await core.topics.get(topicName)
      return topic?.queues.find(queue => queue.queueId === queueId)?.checkpoint ?? 1
    },
  }
  const oldTopics = remember(clock, oldTopicsLifeMs, name => store.readTopic(name))
  const core: Core = {
    ...deps,
    arrivals,
    announce: createAnnouncer(clock, { tell: notice => core.bus.tell(notice) }),
    groups,
    subEnvs: remember(clock, settings.groupCacheMs, name => readSubEnvs({ store }, name)),
    subscriptions: remember(clock, settings.groupCacheMs, name => store.readSubscriptions(name)),
    snapshots: createSnapshots(store, clock),
    topics: remember(clock, settings.topicCacheMs, name => store.readTopic(name)),
    reader: createLogReader({ store, clock, cacheTextLength: settings.batchCacheTextLength }),
    append: createAppender(appendDeps),
    findEnd: (topicName, queueId) => findEnd(appendDeps, topicName, queueId),
    lastQueues: new Map(),
    queueNames: createLru(maxRemembered),
    offsetVersions: createLru(maxRemembered),
    settledVersions: createLru(maxRemembered),
    silences: createSilenceWatch(settings.sessionTimeoutMs),
    looks: createLooks(),
    logWatch: createLogWatch({ store, clock, topicOf: oldTopics.get }),
    names: remember(clock, namesLifeMs, (kind: 'topic' | 'group') =>
      listAll(page => (kind === 'topic' ? store.listTopics(page) : store.listGroups(page))),
    ),
    oldTopics,
    expiryCheckedAtMs: new Map(),
  }
  return core
}

/** Whoever changed a group says so: this container's memory of it is dropped, and those who wait here look again. */
export function groupHasChanged(core: Core, groupName: string): void {
  core.groups.forget(groupName)
  core.arrivals.announceInTurn(groupArrival(groupName))
}

/** Reads by name, remembering each answer for a short time. Absence is not remembered. */
export type Remembered<T, Name extends string = string> = {
  get(name: Name): Promise<T | undefined>
  forget(name: Name): void
}

const maxRemembered = 10_000
const headsLifeMs = 1_000
const namesLifeMs = 5 * 60_000
/** Each is read again within the hour, when it is checkpointed. */
const oldTopicsLifeMs = 75 * 60_000

function remember<T, Name extends string = string>(
  clock: Clock,
  lifeMs: number,
  read: (name: Name) => Promise<T | undefined>,
): Remembered<T, Name> {
  const known = createLru<Name, { value: Promise<T | undefined>; readAtMs: number }>(maxRemembered)
  return {
    get(name) {
      const nowMs = clock.now()
      const entry = known.get(name)
      if (entry && nowMs >= entry.readAtMs && nowMs - entry.readAtMs < lifeMs) return entry.value
      const value = read(name)
      const fresh = { value, readAtMs: nowMs }
      known.set(name, fresh)
      const drop = () => {
        if (known.peek(name) === fresh) known.delete(name)
      }
      value.then(found => {
        if (found === undefined) drop()
      }, drop)
      return value
    },
    forget(name) {
      known.delete(name)
    },
  }
}
