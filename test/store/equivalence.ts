import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Alarm } from '../../core/alarms/alarm.ts'
import type { FailedMessage, FailedState } from '../../core/failed/records.ts'
import { failTopicName } from '../../core/group/fail-topics.ts'
import type { Group, QueueOffset } from '../../core/model.ts'
import type { GroupKind, OffsetRemoval, Store } from '../../core/store.ts'
import { openSqliteStore } from '../../store/sqlite/open.ts'
import {
  batchOf,
  consumerOf,
  groupOf,
  memberOf,
  offsetOf,
  otherSettings,
  queueOf,
  subscriptionOf,
  topicOf,
} from './contract.ts'
import { failedOf } from './contract-failed.ts'

/**
 * Random sequences of operations, run on the store under test and on a reference (SQLite in memory): every answer has to
 * be the same, and so everything that can be read afterwards. Names and queues are drawn from a few, so that operations
 * meet; each run has its own, so that runs do not.
 */
type Command = (store: Store, names: Names) => Promise<unknown>
type Names = { group: (n: number) => string; topic: (n: number) => string; queue: (n: number) => number; run: number }

const few = fc.integer({ min: 1, max: 2 })
/** Two groups, and two copies of the first one: for a sub-environment, and for a consumer. */
const anyGroup = fc.integer({ min: 1, max: 4 })
/** Of the places in the two queues, the later ones are those that a group gets when it has lost the earlier ones. */
const placeId = fc.constantFrom(1, 1, 1, 1, 2, 3, 4)
/** Where owners and claimants meet: mostly in one group, so that what they do builds on each other. */
const busyGroup = fc.constantFrom(1, 1, 1, 2)
const queueOfPlace = (id: number) => ((id - 1) % 2) + 1
const kind = fc.constantFrom<GroupKind>('group', 'group', 'consumer_copy')
/** Of a place in a fail topic, the topic whose failures it holds. */
const origin = fc.option(few, { nil: undefined, freq: 3 })
const originOf = ({ topic }: Names, n: number | undefined) => (n === undefined ? {} : { originTopicName: topic(n) })
const failTopicId = fc.constantFrom({}, {}, { failTopicId: 8 })
const offset = fc.integer({ min: 0, max: 12 })
const version = fc.integer({ min: 0, max: 3 })
const removal = fc.constantFrom('one', 'one', 'other')
const trialOffset = fc.constantFrom(
  {},
  {},
  { trialOffset: 0 },
  { trialOffset: 7 },
  { trialOffset: 7, trialFailures: 2 },
)
const isStale = fc.constantFrom(false, false, false, false, true)

const command = <T extends unknown[]>(
  label: string,
  args: { [K in keyof T]: fc.Arbitrary<T[K]> },
  run: (...drawn: T) => Command,
) => fc.tuple<T>(...args).map(drawn => ({ label: `${label}(${drawn.join(', ')})`, run: run(...drawn) }))

const registryCommands = fc.oneof(
  command(
    'append',
    [few, fc.integer({ min: 1, max: 4 }), fc.boolean()],
    (q, count, again) =>
      async (store, { queue }) => {
        const [tail] = await store.readHeaders(backward(queue(q)))
        const base = tail === undefined ? 1 : again ? tail.base : tail.base + tail.count
        return store.appendBatch(batchOf(queue(q), base, { count }))
      },
  ),
  command(
    'readBatches',
    [few, offset, few],
    (q, fromOffset, maxBatches) =>
      async (store, { queue }) =>
        plain(await store.readBatches({ queueId: queue(q), fromOffset, maxBatches, maxBytes: 1e6, consistent: true })),
  ),
  command('readBatchAt', [few, offset], (q, at) => async (store, { queue }) => {
    const found = await store.readBatchAt(queue(q), at, { consistent: true })
    return found && plain([found])
  }),
  command(
    'createTopic',
    [few, few],
    (n, createdAt) =>
      (store, { topic }) =>
        store.createTopic(topicOf(topic(n), { createdAtMs: createdAt * 100_000 }), [queueOf(topic(n), 1)]),
  ),
  command(
    'addQueues',
    [few, few, fc.constantFrom(undefined, undefined, 0, 1)],
    (n, q, additions) =>
      (store, { topic }) =>
        store.addQueues(topic(n), [queueOf(topic(n), q)], additions),
  ),
  command(
    'updateTopic',
    [few, fc.constantFrom({}, { maxLag: 7 }, { maxLag: 0, maxLagSeconds: 60 })],
    (n, limits) =>
      (store, { topic }) =>
        store.updateTopic(topic(n), limits),
  ),
  command(
    'beginTopicRemoval',
    [few, removal],
    (n, by) =>
      (store, { topic }) =>
        store.beginTopicRemoval(topic(n), by),
  ),
  command(
    'cancelTopicRemoval',
    [few, removal],
    (n, by) =>
      (store, { topic }) =>
        store.cancelTopicRemoval(topic(n), by),
  ),
  command(
    'removeTopicQueues',
    [few, removal, fc.subarray([1, 2])],
    (n, by, queueIds) =>
      (store, { topic }) =>
        store.removeTopicQueues(topic(n), by, queueIds),
  ),
  command(
    'removeTopic',
    [few, removal],
    (n, by) =>
      (store, { topic }) =>
        store.removeTopic(topic(n), by, 100_000),
  ),
  command(
    'setReadOnly',
    [few, few, fc.option(offset, { nil: undefined })],
    (n, q, sinceMs) =>
      (store, { topic }) =>
        store.setReadOnly(topic(n), q, sinceMs),
  ),
  command(
    'removeQueue',
    [few, few],
    (n, q) =>
      (store, { topic }) =>
        store.removeQueue(topic(n), q),
  ),
  command(
    'checkpoint',
    [few, few, offset],
    (n, q, next) =>
      (store, { topic }) =>
        store.checkpointQueue(topic(n), q, next),
  ),
  command('createGroup', [anyGroup], n => (store, names) => store.createGroup(groupNumber(names, n))),
  command(
    'updateGroup',
    [anyGroup, few, fc.array(fc.constantFrom('10.0.0.1', '10.0.0.0/8'), { maxLength: 2 })],
    (n, maxConsumers, allowedIps) =>
      (store, { group }) =>
        store.updateGroup(group(n), { allowedIps, deniedIps: [], maxConsumers }),
  ),
  command('removeGroup', [fc.constantFrom(1, 2, 2, 3, 3, 4, 4)], n => async (store, names) => {
    const group = groupNumber(names, n)
    return store.removeGroup((await store.readGroupRecord(group.name)) ?? group)
  }),
  command(
    'subscribe',
    [anyGroup, few, kind, failTopicId],
    (g, t, kind, failTopicId) =>
      (store, { group, topic }) =>
        store.createSubscription({ ...subscriptionOf(group(g), topic(t)), ...failTopicId }, kind),
  ),
  command(
    'unsubscribe',
    [anyGroup, few, kind],
    (g, t, kind) =>
      (store, { group, topic }) =>
        store.removeSubscription(group(g), topic(t), kind),
  ),
  command(
    'updateSubscription',
    [few, few, few, failTopicId],
    (g, t, threadSize, failTopicId) =>
      (store, { group, topic }) =>
        store.updateSubscription(group(g), topic(t), { ...otherSettings, threadSize, ...failTopicId }),
  ),
  command(
    'addOffset',
    [anyGroup, placeId, few, fc.constantFrom(0, 0, 1), origin],
    (g, id, t, consumerId, origin) => (store, names) =>
      store.addQueueOffset({ ...placeNumber(names, g, id, t), ...originOf(names, origin), consumerId }),
  ),
  command(
    'removeOffset',
    [anyGroup, placeId, few, fc.constantFrom<OffsetRemoval>('unsubscribed', 'queue_removed'), origin],
    (g, id, t, because, origin) => (store, names) =>
      store.removeQueueOffset({ ...placeNumber(names, g, id, t), ...originOf(names, origin) }, because),
  ),
  command(
    'readQueueOffset',
    [anyGroup, placeId],
    (g, id) => (store, names) => store.readQueueOffset(placeNumber(names, g, id, 1)),
  ),
  command(
    'ask',
    [few],
    g =>
      (store, { group }) =>
        store.askRebalance(group(g)),
  ),
  command(
    'raiseMeta',
    [few],
    g =>
      (store, { group }) =>
        store.raiseMeta(group(g)),
  ),
  command(
    'finish',
    [few, version, fc.boolean(), version],
    (g, asked, moved, expectedRbVersion) =>
      (store, { group }) =>
        store.finishRebalance({ groupName: group(g), asked, moved, expectedRbVersion, nowMs: 5 }),
  ),
  command(
    'register',
    [few],
    n =>
      (store, { run }) =>
        store.registerConsumer(consumer(run, n)),
  ),
  command(
    'heartbeat',
    [few, offset],
    (n, nowMs) =>
      (store, { run }) =>
        store.heartbeat(consumer(run, n).consumerId, nowMs),
  ),
  command(
    'join',
    [few, few, offset, fc.option(fc.constantFrom('pod-0', 'pod-1'), { nil: undefined }), fc.option(fc.array(few))],
    (g, n, joinedAtMs, instanceId, predecessors) =>
      (store, { group, run }) =>
        store.joinGroup(
          memberOf(group(g), consumer(run, n).consumerId, {
            joinedAtMs,
            ...(instanceId !== undefined && { instanceId }),
            ...(predecessors !== null && { predecessors }),
          }),
        ),
  ),
  command(
    'leave',
    [few, few],
    (g, n) =>
      (store, { group, run }) =>
        store.leaveGroup(group(g), consumer(run, n).consumerId),
  ),
  command(
    'stopMember',
    [few, few],
    (g, n) =>
      (store, { group, run }) =>
        store.stopMember(group(g), consumer(run, n).consumerId),
  ),
  command(
    'lose',
    [few, few],
    (g, n) =>
      (store, { group, run }) =>
        store.loseMember(group(g), consumer(run, n).consumerId),
  ),
  command(
    'remove',
    [few, fc.option(offset, { nil: undefined })],
    (n, heartbeatBeforeMs) =>
      (store, { run }) =>
        store.removeConsumer(
          consumer(run, n).consumerId,
          heartbeatBeforeMs === undefined ? undefined : { heartbeatBeforeMs },
        ),
  ),
  command('sleep', [few], g => async (store, { group }) => {
    const awake = (await store.listAwakeGroups()).find(({ groupName }) => groupName === group(g))
    if (awake) await store.sleepGroup(awake)
    return awake?.groupName
  }),
)

/** Few names and counts, so that later and earlier ones meet. */
const failed = fc
  .record({
    offset: few,
    state: fc.constantFrom<FailedState>('retrying', 'exhausted', 'succeeded', 'dropped'),
    resends: fc.integer({ min: 0, max: 1 }),
    retryCount: fc.integer({ min: 0, max: 2 }),
    place: few,
    optional: fc.option(few, { nil: undefined }),
    claimedUntilMs: fc.option(offset, { nil: undefined }),
  })
  .map(
    ({ offset, state, resends, retryCount, place, optional, claimedUntilMs }) =>
      (topicName: string): FailedMessage =>
        failedOf(topicName, {
          first: { atMs: 1_000, queueId: 12, offset },
          state,
          resends,
          retryCount,
          place: { queueId: 12, offset: place },
          ...(optional !== undefined && { error: `error ${optional}`, bizId: 'b', settledAtMs: optional }),
          ...(claimedUntilMs !== undefined && { claimedUntilMs }),
        }),
  )
  // Else a failing run would name a function.
  .map(make => Object.assign(make, { toString: () => JSON.stringify(make('')) }))
const listing = (topicName: string) =>
  ({
    groupName: 'billing',
    topicName,
    from: { atMs: 0, queueId: 0, offset: 0 },
    to: { atMs: 9e15, queueId: 0, offset: 0 },
    direction: 'backward',
    limit: 10,
  }) as const

const failedCommands = fc.oneof(
  command(
    'recordFailed',
    [failed],
    make =>
      (store, { topic }) =>
        store.recordFailed(make(topic(1))),
  ),
  command('replaceFailed', [few, failed, offset, isStale], (n, make, nowMs, stale) => async (store, { topic }) => {
    const next = make(topic(1))
    const read = (await store.listFailed(listing(topic(1)))).find(({ first }) => first.offset === n)
    if (!read) return store.replaceFailed(next, next, nowMs)
    const former = stale ? { ...read, retryCount: read.retryCount - 1 } : read
    return store.replaceFailed(former, { ...next, first: read.first }, nowMs)
  }),
)

const alarmOf = (groupName: string): Alarm => ({
  kind: 'lag',
  groupName,
  topicName: 'orders',
  facts: {},
  raisedAtMs: 5,
  isTold: false,
  revision: 1,
})
/** What is put of an alarm that a caller has read: it is raised, cleared, or told. */
const alarmChanges = {
  raised: { raisedAtMs: 6, facts: { messages: 7 } },
  cleared: { clearedAtMs: 7 },
  dropped: { clearedAtMs: 8, isGone: true },
  told: { isTold: true },
}
const alarmChange = fc.constantFrom(...(Object.keys(alarmChanges) as (keyof typeof alarmChanges)[]))
const alarmCommand = command(
  'putAlarm',
  [few, alarmChange, isStale],
  (n, change, stale) =>
    async (store, { group }) => {
      const there = (await store.listAlarms()).find(({ groupName }) => groupName === group(n))
      const revision = (there?.revision ?? 0) + (stale ? 0 : 1)
      return store.putAlarm({ ...alarmOf(group(n)), ...alarmChanges[change], revision })
    },
)

/** What owners and claimants do, and what is done to their queues. */
const placeCommands = fc.oneof(
  command(
    'move',
    [busyGroup, placeId, version, fc.boolean(), fc.boolean()],
    (g, id, consumerId, leaves, ownerIsLost) =>
      async (store, { group }) => {
        // From the state that is there, so that chains of moves come about; stale movers are the contract's own tests.
        const snapshot = await store.readGroup(group(g))
        const offset = snapshot?.offsets.find(found => found.queueOffsetId === id)
        const leaving = { nextConsumerId: consumerId, sinceMs: 9 }
        return store.moveQueue({
          groupName: group(g),
          queueOffsetId: id,
          expectedOffsetVersion: offset?.offsetVersion ?? 0,
          expectedConsumerId: offset?.consumerId ?? 0,
          expectedNextConsumerId: offset?.nextConsumerId,
          rbVersion: (snapshot?.group.rbVersion ?? 0) + 1,
          ownerIsLost,
          ...(leaves && offset ? { consumerId: offset.consumerId, leaving } : { consumerId }),
        })
      },
  ),
  command(
    'commit',
    [busyGroup, placeId, isStale, offset, fc.boolean(), offset, trialOffset],
    (g, id, stale, to, release, nowMs, trial) =>
      async (store, { group }) => {
        const { offsetVersion } = await present(store, group(g), id, stale)
        const place = { groupName: group(g), queueOffsetId: id }
        return store.commitOffset({ ...place, ...trial, offsetVersion, offset: to, release, nowMs })
      },
  ),
  command(
    'claim',
    [
      busyGroup,
      placeId,
      isStale,
      fc.constantFrom('ann', 'bob'),
      offset,
      fc.integer({ min: 1, max: 4 }),
      fc.boolean(),
      fc.boolean(),
    ],
    (g, id, stale, claimant, nowMs, leaseMs, retakes, ownerIsLost) =>
      async (store, { group }) => {
        const { offsetVersion: expectedOffsetVersion } = await present(store, group(g), id, stale)
        const place = { groupName: group(g), queueOffsetId: id }
        const claim = { ...place, expectedOffsetVersion, claimant, retakes, ownerIsLost, nowMs }
        return store.claimQueue({ ...claim, untilMs: nowMs + leaseMs })
      },
  ),
  command('renew', [busyGroup, placeId, isStale, offset], (g, id, stale, untilMs) => async (store, { group }) => {
    const { offsetVersion } = await present(store, group(g), id, stale)
    return store.renewClaim({ groupName: group(g), queueOffsetId: id, offsetVersion, untilMs })
  }),
  command(
    'reset',
    [busyGroup, placeId, offset],
    (g, id, to) =>
      (store, { group }) =>
        store.resetOffset({ groupName: group(g), queueOffsetId: id }, to),
  ),
  command(
    'stop',
    [busyGroup, placeId, fc.boolean()],
    (g, id, isStopped) =>
      (store, { group }) =>
        store.setStopped({ groupName: group(g), queueOffsetId: id }, isStopped),
  ),
)

const commands = fc.oneof(
  { weight: 8, arbitrary: registryCommands },
  { weight: 4, arbitrary: placeCommands },
  { weight: 1, arbitrary: failedCommands },
  { weight: 1, arbitrary: alarmCommand },
)

const groupNumber = ({ group, run }: Names, n: number): Group => {
  if (n === 3) return groupOf(group(n), { mode: 'claimed', origin: { groupName: group(1), subEnv: 'blue' } })
  const { consumerId } = consumer(run, 1)
  return groupOf(group(n), n === 4 ? { origin: { groupName: group(1), consumerId } } : {})
}
const placeNumber = ({ group, topic }: Names, g: number, id: number, t: number): QueueOffset =>
  offsetOf(group(g), id, { topicName: topic(t), queueId: queueOfPlace(id) })

/** The version that a caller presents: the one that is there, so that chains of writes come about, or an older one. */
async function present(store: Store, groupName: string, id: number, stale: boolean) {
  const found = (await store.readGroup(groupName))?.offsets.find(offset => offset.queueOffsetId === id)
  return { offsetVersion: (found?.offsetVersion ?? 0) - (stale ? 1 : 0) }
}

const consumer = (run: number, n: number) => consumerOf(run * 10 + n, `consumer-${run}-${n}`)
const backward = (queueId: number) =>
  ({ queueId, fromOffset: Number.MAX_SAFE_INTEGER, direction: 'backward', limit: 100, consistent: true }) as const
const plain = <B extends { bytes: Uint8Array }>(batches: B[]) =>
  batches.map(batch => ({ ...batch, bytes: Buffer.from(batch.bytes).toString() }))

/** Everything that a run can have changed. */
async function readAll(store: Store, names: Names): Promise<unknown> {
  const both = [1, 2]
  const allGroups = [1, 2, 3, 4]
  const consumerIds = both.map(n => consumer(names.run, n).consumerId)
  const inOrder = (values: string[]) => values.toSorted()
  const topicNames = [...both.map(names.topic), failTopicName(names.group(1), names.topic(1))]
  const topics = await Promise.all(topicNames.map(name => store.readTopic(name)))
  return {
    logs: await Promise.all(both.map(n => store.readHeaders(backward(names.queue(n))))),
    topics: topics.map(topic => topic && { ...topic, groupNames: inOrder(topic.groupNames) }),
    groups: await Promise.all(allGroups.map(n => store.readGroup(names.group(n)))),
    records: await Promise.all(allGroups.map(n => store.readGroupRecord(names.group(n)))),
    subscriptions: await Promise.all(allGroups.map(n => store.readSubscriptions(names.group(n)))),
    listedTopics: await listAfter(`t-${names.run}-`, page => store.listTopics(page)),
    listedGroups: await listAfter(`g-${names.run}-`, page => store.listGroups(page)),
    consumers: await Promise.all(consumerIds.map(consumerId => store.readConsumers([consumerId]))),
    failed: await store.listFailed(listing(names.topic(1))),
    alarms: (await store.listAlarms()).filter(({ groupName }) => both.some(n => groupName === names.group(n))),
    newcomers: (await store.listNewcomers()).filter(consumerId => consumerIds.includes(consumerId)),
    awake: (await store.listAwakeGroups())
      .map(awake => awake.groupName)
      .filter(name => name.startsWith(`g-${names.run}-`)),
  }
}

async function listAfter(prefix: string, list: (page: { after: string; limit: number }) => Promise<string[]>) {
  return (await list({ after: prefix, limit: 10 })).filter(name => name.startsWith(prefix))
}

/** Most begin with something there: from nothing, what a claim or a hand-over takes comes about too seldom. */
const isPrepared = fc.constantFrom(true, true, true, false)
const sequences = fc
  .tuple(isPrepared, fc.array(commands, { minLength: 20, maxLength: 60, size: 'max' }))
  .map(([prepared, drawn]) => (prepared ? [preparation, ...drawn] : drawn))

const preparation = {
  label: 'prepare()',
  run: async (store: Store, names: Names) => {
    const { group, topic, run } = names
    await store.createTopic(
      topicOf(topic(1)),
      [1, 2].map(q => queueOf(topic(1), q)),
    )
    const failOf = { groupName: group(1), topicName: topic(1) }
    await store.createTopic(topicOf(failTopicName(group(1), topic(1)), { failOf }), [])
    for (const n of [1, 2]) {
      await store.createGroup(groupNumber(names, n))
      for (const id of [1, 2]) await store.addQueueOffset(placeNumber(names, n, id, 1))
      await store.createSubscription(subscriptionOf(group(n), topic(1)))
    }
    for (const n of [1, 2]) await store.registerConsumer(consumer(run, n))
  },
}

export async function sameAnswers(store: Store, unique: () => number, runs: number): Promise<void> {
  await using reference = Object.assign(openSqliteStore(':memory:'), {
    [Symbol.asyncDispose]: () => reference.close(),
  })
  await fc.assert(
    fc.asyncProperty(sequences, async sequence => {
      const run = 1_000_000 + unique()
      const names: Names = {
        run,
        group: n => `g-${run}-${n}`,
        topic: n => `t-${run}-${n}`,
        queue: n => run * 10 + n,
      }
      for (const { label, run: act } of sequence) {
        assert.deepEqual(await act(store, names), await act(reference, names), label)
      }
      assert.deepEqual(await readAll(store, names), await readAll(reference, names))
    }),
    { numRuns: runs },
  )
}
