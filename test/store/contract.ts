import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { defaultSubscription } from '../../core/admin/subscriptions.ts'
import type {
  Batch,
  Consumer,
  Group,
  Member,
  Queue,
  QueueOffset,
  Subscription,
  SubscriptionSettings,
  Topic,
} from '../../core/model.ts'
import { maxQueuesAtOnce, type QueueMove, type Store } from '../../core/store.ts'
import { alarmsContract } from './contract-alarms.ts'
import { auditContract } from './contract-audit.ts'
import { claimContract } from './contract-claims.ts'
import { deathContract } from './contract-deaths.ts'
import { failTopicContract } from './contract-fail-topics.ts'
import { failedContract } from './contract-failed.ts'
import { groupContract } from './contract-groups.ts'
import { memberContract } from './contract-members.ts'
import { queueContract } from './contract-queues.ts'
import { targetsContract } from './contract-targets.ts'
import { topicContract } from './contract-topics.ts'
import { sameAnswers } from './equivalence.ts'

/** A store under test, and a hand to do to it what only time does. */
export type ContractStore = {
  store: Store
  /** Removes batches as TTL would: any of them, in any order. */
  deleteBatches(queueId: number, bases: readonly number[]): Promise<void>
  close(): Promise<void>
}

export const batchOf = (queueId: number, base: number, fields: Partial<Batch> = {}): Batch => ({
  queueId,
  base,
  count: 1,
  publishId: `publish-${queueId}-${base}`,
  appendedAtMs: 1_000_000,
  expiresAtMs: 90_000_000,
  codec: 0,
  bytes: Buffer.from(`[{"body":"${base}"}]`),
  ...fields,
})

export const headerOf = ({ codec: _codec, bytes: _bytes, ...header }: Batch) => header

export const topicOf = (name: string, fields: Partial<Topic> = {}): Topic => ({
  name,
  topicId: 7,
  retentionMs: 3_600_000,
  createdAtMs: 1_000,
  ...fields,
})

export const queueOf = (topicName: string, queueId: number, fields: Partial<Queue> = {}): Queue => ({
  topicName,
  queueId,
  checkpoint: 1,
  ...fields,
})

export const groupOf = (name: string, fields: Partial<Group> = {}): Group => ({
  name,
  mode: 'balanced',
  allowedIps: [],
  deniedIps: [],
  maxConsumers: 0,
  rbVersion: 0,
  metaVersion: 1,
  version: 1,
  rebalanceAsked: 0,
  rebalanceDone: 0,
  rebalancedAtMs: 0,
  rebalancedVersion: 0,
  createdAtMs: 1_000,
  ...fields,
})

export const subscriptionOf = (groupName: string, topicName: string): Subscription => ({
  groupName,
  topicName,
  topicId: 7,
  ...defaultSubscription,
})

/** Settings of which each differs from the default, at an end of its range where it has one. */
export const otherSettings: SubscriptionSettings = {
  threadSize: 9,
  consumerBatchSize: 8,
  pullBatchSize: 7,
  maxPullTimeSeconds: 6,
  tag: 'tag-a,tag ü,\u{1f600}',
  delayProcessTimeSeconds: 43_200,
  timeoutSeconds: 1,
  retryCount: 0,
  retryDelaySeconds: 0,
  retryBackoffRate: 1.5,
  maxRetryDelaySeconds: 43_200,
  retryInPlace: true,
  trace: true,
  maxLag: 500,
  maxLagSeconds: 60,
}

export const offsetOf = (groupName: string, queueOffsetId: number, fields: Partial<QueueOffset> = {}): QueueOffset => ({
  groupName,
  queueOffsetId,
  topicName: 'orders',
  queueId: queueOffsetId,
  offset: 0,
  offsetVersion: 0,
  consumerId: 0,
  isStopped: false,
  rbVersion: 0,
  ...fields,
})

export const consumerOf = (consumerId: number, name: string, fields: Partial<Consumer> = {}): Consumer => ({
  consumerId,
  name,
  ip: '10.0.0.1',
  sdkVersion: '5.5.1',
  lan: 'java',
  heartbeatAtMs: 1_000,
  groupNames: [],
  ...fields,
})

export const memberOf = (groupName: string, consumerId: number, fields: Partial<Member> = {}): Member => ({
  groupName,
  consumerId,
  consumerName: `consumer-${consumerId}`,
  ip: '10.0.0.1',
  topicNames: ['orders'],
  joinedAtMs: 1_000,
  ...fields,
})

export type ContractOptions = {
  skip?: string
  /** Random command sequences to compare with the reference. @default 60 */
  sequences?: number
}

/** What the parts of the contract share: the store, once it is open, and a number that names nothing yet. */
export type ContractScene = { store: () => Store; unique: () => number }

/** The specification of the store port. Every store and every engine has to pass it. */
export function storeContract(name: string, open: () => Promise<ContractStore>, options: ContractOptions = {}): void {
  describe(`store contract: ${name}`, { skip: options.skip ?? false }, () => {
    let opened: ContractStore
    let store: Store
    let fresh = 0
    // Each test has queues and names of its own, so that all can share one store.
    const unique = () => ++fresh
    before(async () => {
      opened = await open()
      store = opened.store
    })
    after(() => opened?.close())

    const appendChain = async (queueId: number, counts: number[]): Promise<Batch[]> => {
      const batches: Batch[] = []
      let base = 1
      for (const count of counts) {
        const batch = batchOf(queueId, base, { count })
        assert.deepEqual(await store.appendBatch(batch), { outcome: 'stored' })
        batches.push(batch)
        base += count
      }
      return batches
    }
    const forward = (queueId: number, fromOffset: number, limits: { maxBatches?: number; maxBytes?: number } = {}) =>
      store.readBatches({ queueId, fromOffset, maxBatches: 100, maxBytes: 1e9, consistent: true, ...limits })

    describe('the log', () => {
      test('stores a batch once and names the winner to whoever comes second', async () => {
        const queueId = 1000 + unique()
        const first = batchOf(queueId, 1, { count: 3, publishId: 'first' })
        assert.deepEqual(await store.appendBatch(first), { outcome: 'stored' })
        const second = await store.appendBatch(batchOf(queueId, 1, { publishId: 'second' }))
        assert.deepEqual(second, { outcome: 'taken', winner: headerOf(first) })
      })

      test('gives a batch back as it was stored, byte for byte', async () => {
        const queueId = 1000 + unique()
        const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 7 + (i >> 8)) % 256))
        const batch = batchOf(queueId, 1, { count: 1000, codec: 2, bytes })
        await store.appendBatch(batch)
        const [read] = await forward(queueId, 1)
        assert.ok(read)
        assert.deepEqual({ ...read, bytes: Buffer.from(read.bytes) }, batch)
      })

      test('reads batches forward from the first that begins at or behind an offset', async () => {
        const queueId = 1000 + unique()
        const batches = await appendChain(queueId, [2, 3, 1])
        const bases = async (fromOffset: number) => (await forward(queueId, fromOffset)).map(batch => batch.base)
        assert.deepEqual(
          await bases(1),
          batches.map(batch => batch.base),
        )
        assert.deepEqual(await bases(2), [3, 6])
        assert.deepEqual(await bases(7), [])
      })

      test('stops reading at the number of batches, and once it has read enough bytes', async () => {
        const queueId = 1000 + unique()
        await appendChain(queueId, [1, 1, 1, 1])
        assert.equal((await forward(queueId, 1, { maxBatches: 2 })).length, 2)
        assert.equal((await forward(queueId, 1, { maxBytes: 1 })).length, 1)
      })

      test('reads across pages of the engine without losing a batch', async () => {
        const queueId = 1000 + unique()
        const bytes = Buffer.alloc(300_000, 1)
        for (let base = 1; base <= 8; base++) await store.appendBatch(batchOf(queueId, base, { bytes }))
        assert.deepEqual(
          (await forward(queueId, 1)).map(batch => batch.base),
          [1, 2, 3, 4, 5, 6, 7, 8],
        )
      })

      test('finds the last batch that begins at or before an offset', async () => {
        const queueId = 1000 + unique()
        await appendChain(queueId, [2, 3])
        const at = async (offset: number) => (await store.readBatchAt(queueId, offset, { consistent: true }))?.base
        assert.equal(await at(2), 1)
        assert.equal(await at(3), 3)
        assert.equal(await at(99), 3)
        assert.equal(await at(0), undefined)
      })

      test('reads headers in both directions', async () => {
        const queueId = 1000 + unique()
        const headers = (await appendChain(queueId, [2, 3, 1])).map(headerOf)
        const read = (direction: 'forward' | 'backward', fromOffset: number, limit: number) =>
          store.readHeaders({ queueId, direction, fromOffset, limit, consistent: true })
        assert.deepEqual(await read('forward', 1, 2), headers.slice(0, 2))
        assert.deepEqual(await read('backward', Number.MAX_SAFE_INTEGER, 10), headers.toReversed())
        assert.deepEqual(await read('backward', 5, 1), headers.slice(1, 2))
      })

      test('keeps queues apart', async () => {
        const [one, other] = [1000 + unique(), 1000 + unique()]
        await appendChain(one, [1, 1])
        await appendChain(other, [5])
        assert.deepEqual(
          (await forward(one, 1)).map(batch => batch.queueId),
          [one, one],
        )
      })

      test('forgets batches that were deleted, whichever they are', async () => {
        const queueId = 1000 + unique()
        await appendChain(queueId, [1, 1, 1, 1])
        await opened.deleteBatches(queueId, [2, 4])
        assert.deepEqual(
          (await forward(queueId, 1)).map(batch => batch.base),
          [1, 3],
        )
      })

      test('lets exactly one of many concurrent appends have a base', async () => {
        const queueId = 1000 + unique()
        const outcomes = await Promise.all(
          Array.from({ length: 20 }, (_, i) => store.appendBatch(batchOf(queueId, 1, { publishId: `racer-${i}` }))),
        )
        assert.equal(outcomes.filter(({ outcome }) => outcome === 'stored').length, 1)
        const [stored] = await forward(queueId, 1)
        for (const answer of outcomes) {
          if (answer.outcome === 'taken') assert.equal(answer.winner.publishId, stored?.publishId)
          else assert.equal(answer.outcome, 'stored')
        }
      })
    })

    describe('ids and topics', () => {
      test('never gives an id out twice', async () => {
        const runs = await Promise.all([3, 1, 5, 2].map(async n => ({ first: await store.takeIds('queue', n), n })))
        const ids = runs.flatMap(({ first, n }) => Array.from({ length: n }, (_, i) => first + i))
        assert.equal(new Set(ids).size, ids.length)
        assert.ok(Math.min(...ids) >= 1)
        assert.ok((await store.takeIds('topic', 1)) >= 1)
      })

      test('creates a topic with its queues once', async () => {
        const name = `topic-${unique()}`
        const queues = Array.from({ length: maxQueuesAtOnce }, (_, i) => queueOf(name, i + 1))
        assert.equal(await store.createTopic(topicOf(name), queues), 'created')
        assert.equal(await store.createTopic(topicOf(name, { topicId: 8 }), [queueOf(name, 500)]), 'exists')
        assert.deepEqual(await store.readTopic(name), { topic: topicOf(name), queues, groupNames: [], notifies: [] })
        assert.equal(await store.readTopic(`${name}-unknown`), undefined)
      })

      test('adds queues, in order of their ids, and only once', async () => {
        const name = `topic-${unique()}`
        await store.createTopic(topicOf(name), [queueOf(name, 9)])
        assert.equal(await store.addQueues(name, [queueOf(name, 10)]), 'added')
        assert.equal(await store.addQueues(name, [queueOf(name, 2)]), 'added')
        assert.equal(await store.addQueues(name, [queueOf(name, 3), queueOf(name, 10, { checkpoint: 77 })]), 'conflict')
        const topic = await store.readTopic(name)
        assert.deepEqual(topic?.queues, [queueOf(name, 2), queueOf(name, 9), queueOf(name, 10)])
      })

      test('lists names in pages', async () => {
        const prefix = `list-${unique()}-`
        for (const n of [3, 1, 2]) await store.createTopic(topicOf(prefix + n), [])
        const first = await store.listTopics({ after: prefix, limit: 2 })
        assert.deepEqual(first, [`${prefix}1`, `${prefix}2`])
        assert.deepEqual((await store.listTopics({ after: `${prefix}2`, limit: 1 })).slice(0, 1), [`${prefix}3`])
      })

      test('moves a checkpoint forward only', async () => {
        const name = `topic-${unique()}`
        await store.createTopic(topicOf(name), [queueOf(name, 1)])
        assert.equal(await store.checkpointQueue(name, 1, 100), 'advanced')
        assert.equal(await store.checkpointQueue(name, 1, 100), 'unchanged')
        assert.equal(await store.checkpointQueue(name, 1, 40), 'unchanged')
        assert.equal(await store.checkpointQueue(name, 2, 40), 'unknown_queue')
        assert.equal((await store.readTopic(name))?.queues[0]?.checkpoint, 100)
      })
    })

    describe('groups', () => {
      test('creates a group once, and finds it whole', async () => {
        const name = `group-${unique()}`
        assert.equal(await store.createGroup(groupOf(name)), 'created')
        assert.equal(await store.createGroup({ ...groupOf(name), version: 50 }), 'exists')
        assert.deepEqual(await store.readGroup(name), {
          group: groupOf(name),
          subscriptions: [],
          offsets: [],
          members: [],
          lost: [],
          copies: [],
        })
        assert.deepEqual(await store.readGroupRecord(name), groupOf(name))
        assert.equal(await store.readGroup(`${name}-unknown`), undefined)
        assert.equal(await store.readGroupRecord(`${name}-unknown`), undefined)
        assert.ok((await store.listGroups({ limit: 1000 })).includes(name))
      })

      test('subscribes once, raises the versions, asks for a rebalance and wakes the group', async () => {
        const [groupName, topicName] = [`group-${unique()}`, `topic-${unique()}`]
        const subscription = subscriptionOf(groupName, topicName)
        await store.createTopic(topicOf(topicName), [])
        assert.equal(await store.createSubscription(subscription), 'unknown_group')
        await store.createGroup(groupOf(groupName))
        assert.equal(await store.createSubscription(subscription), 'created')
        assert.equal(await store.createSubscription(subscription), 'exists')
        const snapshot = await store.readGroup(groupName)
        assert.deepEqual(snapshot?.subscriptions, [subscription])
        assert.deepEqual(snapshot?.group, { ...groupOf(groupName), metaVersion: 2, version: 2, rebalanceAsked: 1 })
        assert.deepEqual((await store.readTopic(topicName))?.groupNames, [groupName])
        assert.ok((await store.listAwakeGroups()).some(awake => awake.groupName === groupName))
      })

      test('changes the settings of a subscription and raises the versions', async () => {
        const [groupName, topicName] = [`group-${unique()}`, `topic-${unique()}`]
        await store.createGroup(groupOf(groupName))
        assert.equal(await store.updateSubscription(groupName, topicName, otherSettings), 'unknown_subscription')
        await store.createSubscription(subscriptionOf(groupName, topicName))
        assert.equal(await store.updateSubscription(groupName, topicName, otherSettings), 'updated')
        const snapshot = await store.readGroup(groupName)
        assert.deepEqual(snapshot?.subscriptions, [{ ...subscriptionOf(groupName, topicName), ...otherSettings }])
        assert.equal(snapshot?.group.metaVersion, 3)
        assert.equal(snapshot?.group.version, 3)
        assert.equal(snapshot?.group.rebalanceAsked, 1)
      })

      test('has one offset for each queue of a group', async () => {
        const groupName = `group-${unique()}`
        await store.createGroup(groupOf(groupName))
        assert.equal(await store.addQueueOffset(offsetOf(groupName, 11, { queueId: 5, offset: 3 })), 'created')
        assert.equal(await store.addQueueOffset(offsetOf(groupName, 12, { queueId: 5 })), 'exists')
        assert.equal(await store.addQueueOffset(offsetOf(groupName, 2, { queueId: 6 })), 'created')
        const snapshot = await store.readGroup(groupName)
        assert.deepEqual(snapshot?.offsets, [
          offsetOf(groupName, 2, { queueId: 6 }),
          offsetOf(groupName, 11, { queueId: 5, offset: 3 }),
        ])
      })

      test('reads one place of a group as it is now', async () => {
        const groupName = `group-${unique()}`
        const place = offsetOf(groupName, 7, { queueId: 5, offset: 3, consumerId: 4, offsetVersion: 2 })
        assert.equal(await store.readQueueOffset(place), undefined)
        await store.createGroup(groupOf(groupName))
        await store.addQueueOffset(place)
        assert.deepEqual(await store.readQueueOffset({ groupName, queueOffsetId: 7 }), place)
        assert.equal(await store.readQueueOffset({ groupName, queueOffsetId: 70 }), undefined)
        await store.resetOffset(place, 9)
        const after = { ...place, offset: 9, offsetVersion: 3 }
        assert.deepEqual(await store.readQueueOffset(place), after)
      })

      test('raises metaVersion and version together', async () => {
        const groupName = `group-${unique()}`
        assert.equal(await store.raiseMeta(groupName), undefined)
        await store.createGroup(groupOf(groupName))
        assert.deepEqual(await store.raiseMeta(groupName), { ...groupOf(groupName), metaVersion: 2, version: 2 })
      })

      test('closes a rebalance only for the run that read the present state', async () => {
        const groupName = `group-${unique()}`
        await store.createGroup(groupOf(groupName))
        assert.equal((await store.askRebalance(groupName))?.rebalanceAsked, 1)
        assert.equal((await store.askRebalance(groupName))?.rebalanceAsked, 2)
        const done = { groupName, asked: 2, moved: true, expectedRbVersion: 0, nowMs: 5_000 }
        assert.equal(await store.finishRebalance({ ...done, expectedRbVersion: 1 }), 'conflict')
        assert.equal(await store.finishRebalance(done), 'done')
        assert.equal(await store.finishRebalance(done), 'conflict')
        assert.equal(await store.finishRebalance({ ...done, asked: 1, expectedRbVersion: 1 }), 'conflict')
        assert.deepEqual(await store.readGroupRecord(groupName), {
          ...groupOf(groupName),
          rebalanceAsked: 2,
          rebalanceDone: 2,
          rbVersion: 1,
          version: 2,
          rebalancedAtMs: 5_000,
          rebalancedVersion: 2,
        })
        assert.equal(await store.finishRebalance({ ...done, groupName: `${groupName}-unknown` }), 'conflict')
        assert.equal(await store.askRebalance(`${groupName}-unknown`), undefined)
      })

      test('leaves the versions alone when a rebalance moved nothing', async () => {
        const groupName = `group-${unique()}`
        await store.createGroup(groupOf(groupName))
        await store.askRebalance(groupName)
        await store.finishRebalance({ groupName, asked: 1, moved: false, expectedRbVersion: 0, nowMs: 5_000 })
        const group = await store.readGroupRecord(groupName)
        assert.deepEqual(group, { ...groupOf(groupName), rebalanceAsked: 1, rebalanceDone: 1 })
      })

      test('lets a group sleep, unless it was asked something since', async () => {
        const groupName = `group-${unique()}`
        await store.createGroup(groupOf(groupName))
        const awake = async () => (await store.listAwakeGroups()).find(group => group.groupName === groupName)
        assert.equal(await awake(), undefined)
        await store.askRebalance(groupName)
        const seen = await awake()
        assert.ok(seen)
        await store.askRebalance(groupName)
        await store.sleepGroup(seen)
        const again = await awake()
        assert.ok(again)
        await store.sleepGroup(again)
        assert.equal(await awake(), undefined)
        await store.askRebalance(groupName)
        await store.sleepGroup(again)
        assert.ok(await awake())
      })
    })

    describe('ownership and progress', () => {
      const ownedQueue = async () => {
        const groupName = `group-${unique()}`
        await store.createGroup(groupOf(groupName))
        await store.addQueueOffset(offsetOf(groupName, 1, { offset: 10 }))
        const read = async () => (await store.readGroup(groupName))?.offsets[0]
        const move = (fields: Partial<QueueMove>) =>
          store.moveQueue({
            groupName,
            queueOffsetId: 1,
            expectedOffsetVersion: 0,
            expectedConsumerId: 0,
            expectedNextConsumerId: undefined,
            consumerId: 0,
            rbVersion: 1,
            ...fields,
          })
        const own = () => move({ consumerId: 21 })
        const leave = (nextConsumerId = 22) =>
          move({
            expectedOffsetVersion: 1,
            expectedConsumerId: 21,
            consumerId: 21,
            leaving: { nextConsumerId, sinceMs: 3_000 },
            rbVersion: 1,
          })
        const commit = (offsetVersion: number, offset: number, release = false) =>
          store.commitOffset({ groupName, queueOffsetId: 1, offsetVersion, offset, release, nowMs: 7_000 })
        return { groupName, read, move, own, leave, commit }
      }

      test('moves a queue only from the state that was read, and fences the former owner', async () => {
        const { groupName, read, move, own } = await ownedQueue()
        assert.equal(await own(), 'moved')
        assert.equal(await move({ consumerId: 22 }), 'conflict')
        assert.equal(await move({ consumerId: 22, expectedOffsetVersion: 1 }), 'conflict')
        const owned = offsetOf(groupName, 1, { offset: 10, offsetVersion: 1, consumerId: 21, rbVersion: 1 })
        assert.deepEqual(await read(), owned)
        assert.equal(await move({ consumerId: 0, expectedOffsetVersion: 1, expectedConsumerId: 21 }), 'moved')
        assert.deepEqual(await read(), { ...owned, offsetVersion: 2, consumerId: 0 })
        assert.equal(await move({ queueOffsetId: 77 }), 'conflict')
      })

      test('refuses a move that the group would not tell of with its next rbVersion', async () => {
        const { read, move } = await ownedQueue()
        assert.equal(await move({ consumerId: 21, rbVersion: 0 }), 'conflict')
        assert.equal(await move({ consumerId: 21, rbVersion: 2 }), 'conflict')
        assert.equal((await read())?.consumerId, 0)
      })

      test('lets an owner that is asked to leave go on committing', async () => {
        const { groupName, read, own, leave, commit } = await ownedQueue()
        await own()
        assert.equal(await leave(), 'moved')
        const leaving = offsetOf(groupName, 1, {
          offset: 12,
          offsetVersion: 1,
          consumerId: 21,
          rbVersion: 1,
          nextConsumerId: 22,
          leavingSinceMs: 3_000,
          committedAtMs: 7_000,
        })
        assert.deepEqual(await commit(1, 12), { outcome: 'advanced', offset: 12, offsetVersion: 1, handedOver: false })
        assert.deepEqual(await read(), leaving)
      })

      test('refuses a move that has read another next owner', async () => {
        const { read, move, own, leave } = await ownedQueue()
        await own()
        await leave()
        const expected = { expectedOffsetVersion: 1, expectedConsumerId: 21 }
        assert.equal(await move({ ...expected, consumerId: 21 }), 'conflict')
        assert.equal(await move({ ...expected, consumerId: 21, expectedNextConsumerId: 23 }), 'conflict')
        assert.equal(await move({ ...expected, consumerId: 21, expectedNextConsumerId: 22 }), 'moved')
        const back = await read()
        assert.equal(back?.offsetVersion, 1)
        assert.equal(back?.nextConsumerId, undefined)
        assert.equal(back?.leavingSinceMs, undefined)
      })

      test('hands a leaving queue over with its release, and tells the group', async () => {
        for (const [to, offset] of [
          [22, 15],
          [0, 15],
          [22, 9],
        ] as const) {
          const { groupName, read, own, leave, commit } = await ownedQueue()
          await own()
          await leave(to)
          const outcome = offset > 10 ? 'advanced' : 'unchanged'
          const at = Math.max(10, offset)
          assert.deepEqual(await commit(1, offset, true), { outcome, offset: at, offsetVersion: 2, handedOver: true })
          const handed = offsetOf(groupName, 1, {
            offset: at,
            offsetVersion: 2,
            consumerId: to,
            rbVersion: 1,
            ...(offset > 10 && { committedAtMs: 7_000 }),
          })
          assert.deepEqual(await read(), handed)
          assert.deepEqual(await store.readGroupRecord(groupName), {
            ...groupOf(groupName),
            rbVersion: 1,
            version: 2,
            rebalancedVersion: 2,
            rebalancedAtMs: 7_000,
          })
          assert.equal((await commit(1, 99)).outcome, 'fenced')
          assert.equal((await commit(1, 99, true)).outcome, 'fenced')
        }
      })

      test('advances an offset, and answers a repeat with unchanged', async () => {
        const { read, commit } = await ownedQueue()
        const unchanged = { outcome: 'unchanged', offset: 12, offsetVersion: 0, handedOver: false }
        assert.deepEqual(await commit(0, 12), { ...unchanged, outcome: 'advanced' })
        assert.deepEqual(await commit(0, 12), unchanged)
        assert.deepEqual(await commit(0, 11), unchanged)
        assert.equal((await read())?.offset, 12)
      })

      test('refuses a commit from another offsetVersion', async () => {
        const { read, own, commit } = await ownedQueue()
        await own()
        assert.deepEqual(await commit(0, 99), { outcome: 'fenced', offset: 10, offsetVersion: 1 })
        assert.deepEqual(await commit(2, 99), { outcome: 'fenced', offset: 10, offsetVersion: 1 })
        assert.deepEqual(await commit(0, 99, true), { outcome: 'fenced', offset: 10, offsetVersion: 1 })
        assert.equal((await read())?.offset, 10)
      })

      test('raises offsetVersion with a release of a queue that stays, and keeps its owner', async () => {
        const { groupName, read, own, commit } = await ownedQueue()
        await own()
        const kept = { outcome: 'unchanged', offset: 15, handedOver: false }
        assert.deepEqual(await commit(1, 15, true), { ...kept, outcome: 'advanced', offsetVersion: 2 })
        assert.deepEqual(await commit(2, 15, true), { ...kept, offsetVersion: 3 })
        assert.deepEqual(await commit(3, 9, true), { ...kept, offsetVersion: 4 })
        const owned = { consumerId: 21, rbVersion: 1, committedAtMs: 7_000 }
        const offset = offsetOf(groupName, 1, { offset: 15, offsetVersion: 4, ...owned })
        assert.deepEqual(await read(), offset)
      })

      test('knows no commit for a queue that the group does not have', async () => {
        const { groupName } = await ownedQueue()
        const commit = { groupName, queueOffsetId: 77, offsetVersion: 0, offset: 5, nowMs: 7_000 }
        assert.deepEqual(await store.commitOffset({ ...commit, release: false }), { outcome: 'unknown_queue' })
        assert.deepEqual(await store.commitOffset({ ...commit, release: true }), { outcome: 'unknown_queue' })
      })

      test('resets an offset forwards and back, fences its owner and tells the group', async () => {
        const { groupName, read, own, commit } = await ownedQueue()
        await own()
        const place = { groupName, queueOffsetId: 1 }
        assert.equal(await store.resetOffset(place, 3), 'reset')
        const reset = offsetOf(groupName, 1, { offset: 3, offsetVersion: 2, consumerId: 21, rbVersion: 1 })
        assert.deepEqual(await read(), reset)
        assert.equal((await commit(1, 20)).outcome, 'fenced')
        assert.equal(await store.resetOffset(place, 90), 'reset')
        assert.deepEqual(await read(), { ...reset, offset: 90, offsetVersion: 3 })
        assert.equal(await store.resetOffset({ groupName, queueOffsetId: 77 }, 3), 'unknown_queue')
        const told = { ...groupOf(groupName), metaVersion: 3, version: 3 }
        assert.deepEqual(await store.readGroupRecord(groupName), told)
      })

      test('stops a queue and starts it again, whoever owns it meanwhile', async () => {
        const { groupName, read, own } = await ownedQueue()
        const place = { groupName, queueOffsetId: 1 }
        assert.equal(await store.setStopped(place, true), 'set')
        await own()
        const stopped = offsetOf(groupName, 1, {
          offset: 10,
          offsetVersion: 1,
          consumerId: 21,
          rbVersion: 1,
          isStopped: true,
        })
        assert.deepEqual(await read(), stopped)
        assert.equal(await store.setStopped(place, false), 'set')
        assert.deepEqual(await read(), { ...stopped, isStopped: false })
        assert.equal(await store.setStopped({ groupName, queueOffsetId: 77 }, true), 'unknown_queue')
        assert.equal((await store.readGroupRecord(groupName))?.version, 3)
      })

      test('ends at the highest of many concurrent commits', async () => {
        const { read, commit } = await ownedQueue()
        await Promise.all([31, 18, 40, 25, 39].map(offset => commit(0, offset)))
        assert.equal((await read())?.offset, 40)
      })
    })

    describe('consumers', () => {
      const find = async (consumerId: number) => (await store.readConsumers([consumerId]))[0]
      const registered = async (heartbeatAtMs = 1_000) => {
        const consumerId = await store.takeIds('consumer', 1)
        const consumer = consumerOf(consumerId, `consumer-${unique()}`, { heartbeatAtMs })
        assert.equal(await store.registerConsumer(consumer), consumerId)
        return consumer
      }

      test('gives the same name the same id', async () => {
        const consumer = await registered()
        const again = await store.registerConsumer({
          ...consumer,
          consumerId: consumer.consumerId + 1,
          heartbeatAtMs: 2_000,
        })
        assert.equal(again, consumer.consumerId)
        assert.deepEqual(await find(consumer.consumerId), { ...consumer, heartbeatAtMs: 2_000 })
      })

      test('reads the consumers that there are', async () => {
        const [one, other] = [await registered(), await registered()]
        const found = await store.readConsumers([one.consumerId, 9_999_999, other.consumerId])
        const byId = found.toSorted((a, b) => a.consumerId - b.consumerId)
        assert.deepEqual(byId, [one, other])
        assert.deepEqual(await store.readConsumers([]), [])
      })

      test('renews a heartbeat, and says when the consumer is not known', async () => {
        const consumer = await registered()
        const alive = { ...consumer, heartbeatAtMs: 5_000 }
        assert.deepEqual(await store.heartbeat(consumer.consumerId, 5_000), alive)
        assert.deepEqual(await store.readConsumers([consumer.consumerId]), [alive])
        assert.equal(await store.heartbeat(9_999_999, 5_000), undefined)
      })

      test('joins a group, and asks nothing of it', async () => {
        const consumer = await registered()
        const groupName = `group-${unique()}`
        const member = memberOf(groupName, consumer.consumerId)
        await store.createGroup(groupOf(groupName))
        assert.equal(await store.joinGroup({ ...member, consumerId: 9_999_999 }), 'unknown_consumer')
        assert.equal(await store.joinGroup(member), 'joined')
        assert.equal(await store.joinGroup({ ...member, topicNames: ['orders', 'bills'] }), 'joined')
        const snapshot = await store.readGroup(groupName)
        assert.deepEqual(snapshot?.members, [{ ...member, topicNames: ['orders', 'bills'] }])
        assert.deepEqual(snapshot?.group, groupOf(groupName))
        assert.deepEqual((await find(consumer.consumerId))?.groupNames, [groupName])
      })

      test('keeps its groups when a consumer registers again', async () => {
        const consumer = await registered()
        const groupName = `group-${unique()}`
        await store.createGroup(groupOf(groupName))
        await store.joinGroup(memberOf(groupName, consumer.consumerId))
        await store.registerConsumer(consumer)
        assert.deepEqual((await find(consumer.consumerId))?.groupNames, [groupName])
      })

      test('leaves a group once, and asks nothing of it', async () => {
        const consumer = await registered()
        const groupName = `group-${unique()}`
        await store.createGroup(groupOf(groupName))
        await store.joinGroup(memberOf(groupName, consumer.consumerId))
        assert.equal(await store.leaveGroup(groupName, consumer.consumerId), 'left')
        assert.equal(await store.leaveGroup(groupName, consumer.consumerId), 'not_a_member')
        const snapshot = await store.readGroup(groupName)
        assert.deepEqual([snapshot?.members, snapshot?.group], [[], groupOf(groupName)])
      })

      test('removes a consumer only if its heartbeat is as old as was thought', async () => {
        const consumer = await registered(1_000)
        const { consumerId, name } = consumer
        assert.equal(await store.removeConsumer(consumerId, { heartbeatBeforeMs: 1_000 }), undefined)
        assert.deepEqual(await store.removeConsumer(consumerId, { heartbeatBeforeMs: 1_001 }), consumer)
        assert.equal(await store.removeConsumer(consumerId), undefined)
        assert.equal(await store.heartbeat(consumerId, 2_000), undefined)
        assert.deepEqual(await store.readConsumers([consumerId]), [])
        const back = consumerOf(await store.takeIds('consumer', 1), name)
        assert.equal(await store.registerConsumer(back), back.consumerId)
        assert.deepEqual(await store.removeConsumer(back.consumerId), back)
      })
    })

    const scene: ContractScene = { store: () => store, unique }
    auditContract(scene)
    targetsContract(scene)
    alarmsContract(scene)
    queueContract(scene)
    topicContract(scene)
    groupContract(scene)
    failTopicContract(scene)
    failedContract(scene)
    claimContract(scene)
    memberContract(scene)
    deathContract(scene)

    test('answers random commands as the reference does', () => sameAnswers(store, unique, options.sequences ?? 60))
  })
}
