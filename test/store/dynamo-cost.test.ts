import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { boundOf, entryIdOf } from '../../core/audit/records.ts'
import type { Batch } from '../../core/model.ts'
import { createCapacityMeter, type Operation } from '../../store/dynamo/meter.ts'
import { openTestStore, type TestStore } from '../support/dynamo-store.ts'
import { dynoxide, type RunningEngine } from '../support/engines.ts'
import { consumerOf, groupOf, memberOf, offsetOf, queueOf, subscriptionOf, topicOf } from './contract.ts'
import { failedOf } from './contract-failed.ts'
import { targetOf } from './contract-targets.ts'

const engine = dynoxide()
const meter = createCapacityMeter()
const queueId = 1

/** Random, so that nothing on the way can make it smaller. */
const batchAt = (base: number, count: number, byteLength: number): Batch => ({
  queueId,
  base,
  count,
  publishId: `publish-${base}`,
  appendedAtMs: 1_800_000_000_000,
  expiresAtMs: 1_800_086_400_000,
  codec: 0,
  bytes: crypto.getRandomValues(new Uint8Array(byteLength)),
})

describe('what the store asks of DynamoDB', { skip: engine.skip ?? false }, () => {
  let running: RunningEngine
  let opened: TestStore
  before(async () => {
    running = await engine.start()
  })
  after(() => running?.stop())
  beforeEach(async () => {
    opened = await openTestStore(running, { onCapacity: meter.onCapacity })
    meter.clear()
  })
  afterEach(() => opened.close())

  async function append(count: number, byteLength: number) {
    for (let i = 0; i < count; i++) await opened.store.appendBatch(batchAt(1 + i * 10, 10, byteLength))
    meter.clear()
  }

  test('an uncontended append of up to 1 KB is one request and one write unit', async () => {
    assert.deepEqual(await opened.store.appendBatch(batchAt(1, 10, 900)), { outcome: 'stored' })
    assert.deepEqual(meter.sum(), { requests: 1, readUnits: 0, writeUnits: 1 })
  })

  test('what becomes of a failed message is one request and one write unit each time, and so is a refusal', async () => {
    const { store } = opened
    const record = { ...failedOf('orders'), origin: { queueId: 7, offset: 1 }, error: 'Error: '.padEnd(300, 'x') }
    for (const next of [record, { ...record, retryCount: 2 }, record, { ...record, state: 'succeeded' as const }]) {
      meter.clear()
      await store.recordFailed(next)
      assert.deepEqual(meter.sum(), { requests: 1, readUnits: 0, writeUnits: 1 })
    }
    meter.clear()
    await store.replaceFailed({ ...record, retryCount: 2 }, { ...record, retryCount: 2 }, 0)
    assert.deepEqual(meter.sum(), { requests: 1, readUnits: 0, writeUnits: 1 })
  })

  test('a refused append is one request: the refusal carries the winner', async () => {
    await append(1, 900)
    assert.equal((await opened.store.appendBatch(batchAt(1, 3, 900))).outcome, 'taken')
    assert.deepEqual(meter.sum(), { requests: 1, readUnits: 0, writeUnits: 1 })
  })

  test('whole batches up to a count are one query', async () => {
    await append(20, 3000)
    const read = await opened.store.readBatches({
      queueId,
      fromOffset: 1,
      maxBatches: 10,
      maxBytes: 1_000_000,
      consistent: false,
    })
    assert.equal(read.length, 10)
    const { requests, readUnits } = meter.sum()
    assert.equal(requests, 1)
    assert.ok(readUnits <= 4, `10 batches of 3 KB, half a unit for each 4 KB, are 4 read units; it took ${readUnits}`)
  })

  test('a read by size pays for hardly more than it returns, once it knows the queue', async () => {
    await append(60, 6000)
    const query = { queueId, fromOffset: 1, maxBatches: 1000, maxBytes: 60_000, consistent: false }
    await opened.store.readBatches(query)
    meter.clear()
    const read = await opened.store.readBatches(query)
    assert.equal(read.length, 10)
    const { requests, readUnits } = meter.sum()
    assert.equal(requests, 1)
    assert.ok(readUnits <= 10, `60 KB are 8 read units; it took ${readUnits}`)
  })

  test('a read of small batches by size is one query', async () => {
    await append(40, 100)
    const query = { queueId, fromOffset: 1, maxBatches: 1000, maxBytes: 2_000, consistent: false }
    await opened.store.readBatches(query)
    meter.clear()
    assert.equal((await opened.store.readBatches(query)).length, 20)
    assert.equal(meter.sum().requests, 1)
  })

  test('a first read of a queue of many small batches finds their size in one page', async () => {
    await append(600, 100)
    const query = { queueId, fromOffset: 1, maxBatches: 1000, maxBytes: 1_000_000, consistent: false }
    assert.equal((await opened.store.readBatches(query)).length, 600)
    assert.ok(meter.sum().requests <= 2)
  })

  test('the tail is one query of one item', async () => {
    await append(20, 100)
    await opened.store.readBatchAt(queueId, Number.MAX_SAFE_INTEGER, { consistent: true })
    assert.deepEqual(meter.sum(), { requests: 1, readUnits: 1, writeUnits: 0 })
  })

  test('a commit is one write request of one unit, whatever its outcome', async () => {
    await opened.store.createGroup(group)
    await opened.store.addQueueOffset(offset)
    const commit = { groupName: 'orders', queueOffsetId: 7, offsetVersion: 0, offset: 5, release: false, nowMs: 5 }
    for (const [asked, outcome] of [
      [commit, 'advanced'],
      [commit, 'unchanged'],
      [{ ...commit, offsetVersion: 9 }, 'fenced'],
      [{ ...commit, offset: 6, release: true, nowMs: 5 }, 'advanced'],
    ] as const) {
      meter.clear()
      assert.equal((await opened.store.commitOffset(asked)).outcome, outcome)
      assert.deepEqual(meter.sum(), { requests: 1, readUnits: 0, writeUnits: 1 })
    }
  })

  const oneWrite = { requests: 1, readUnits: 0, writeUnits: 1 }

  test('a claim is one write request of one unit, whatever its outcome', async () => {
    await opened.store.createGroup(group)
    await opened.store.addQueueOffset(offset)
    const claim = { ...place, expectedOffsetVersion: 0, claimant: 'worker-7 on host-12', nowMs: now, untilMs: now + 60 }
    for (const outcome of ['claimed', 'conflict']) {
      meter.clear()
      assert.equal((await opened.store.claimQueue(claim)).outcome, outcome)
      assert.deepEqual(meter.of('claimQueue'), oneWrite)
      assert.deepEqual(meter.sum(), oneWrite)
    }
  })

  test('a renewal is one write request of one unit, whatever its outcome', async () => {
    await opened.store.createGroup(group)
    await opened.store.addQueueOffset({ ...offset, claim: { claimant: 'worker-7', untilMs: now } })
    for (const [offsetVersion, outcome] of [
      [0, 'renewed'],
      [1, 'fenced'],
    ] as const) {
      meter.clear()
      const renewal = { ...place, offsetVersion, untilMs: now + 60 }
      assert.equal((await opened.store.renewClaim(renewal)).outcome, outcome)
      assert.deepEqual(meter.sum(), oneWrite)
    }
  })

  test('a commit of a claimant is one write request of one unit, also its last one, which gives the queue up', async () => {
    await opened.store.createGroup(group)
    await opened.store.addQueueOffset({ ...offset, claim: { claimant: 'worker-7', untilMs: now } })
    for (const [asked, release] of [
      [5, false],
      [6, true],
    ] as const) {
      meter.clear()
      const commit = { ...place, offsetVersion: 0, offset: asked, release, nowMs: now }
      assert.equal((await opened.store.commitOffset(commit)).outcome, 'advanced')
      assert.deepEqual(meter.sum(), oneWrite)
    }
  })

  test('a word of what is on trial rides with a commit, and costs a write of its own where the offset stays', async () => {
    await opened.store.createGroup(group)
    await opened.store.addQueueOffset(offset)
    const commit = { ...place, offsetVersion: 0, release: false, nowMs: now }
    for (const [asked, trialOffset, outcome, writes] of [
      [5, 6, 'advanced', 1],
      [5, 7, 'unchanged', 2],
      [5, 0, 'unchanged', 2],
      [6, 0, 'advanced', 1],
    ] as const) {
      meter.clear()
      assert.equal((await opened.store.commitOffset({ ...commit, offset: asked, trialOffset })).outcome, outcome)
      assert.deepEqual(meter.sum(), { requests: writes, readUnits: 0, writeUnits: writes })
    }
  })

  test('a hand-over is a write that finds out and a transaction of two items', async () => {
    await opened.store.createGroup(group)
    const leaving = { consumerId: 1, nextConsumerId: 2, leavingSinceMs: now, offset: 3 }
    await opened.store.addQueueOffset({ ...offset, ...leaving })
    meter.clear()
    const commit = { ...place, offsetVersion: 0, offset: 5, release: true, nowMs: now }
    assert.equal((await opened.store.commitOffset(commit)).outcome, 'advanced')
    assert.deepEqual(meter.sum(), { requests: 2, readUnits: 0, writeUnits: 1 + 4 })
  })

  test('a heartbeat is one write request of one unit', async () => {
    const consumer = { consumerId: 1, name: 'c', ip: '', sdkVersion: '', lan: '', heartbeatAtMs: 1, groupNames: [] }
    await opened.store.registerConsumer(consumer)
    meter.clear()
    await opened.store.heartbeat(1, 2)
    assert.deepEqual(meter.sum(), { requests: 1, readUnits: 0, writeUnits: 1 })
  })

  test('all of a group is one query', async () => {
    await opened.store.createGroup(group)
    for (let id = 1; id <= 30; id++) {
      await opened.store.addQueueOffset({ ...offset, queueOffsetId: id, queueId: id })
    }
    meter.clear()
    assert.equal((await opened.store.readGroup('orders'))?.offsets.length, 30)
    assert.equal(meter.sum().requests, 1)
  })

  test('a poll that is told nothing new reads half a unit for the group and one for the consumer', async () => {
    await opened.store.createGroup({ ...group, allowedIps: Array.from({ length: 20 }, (_, i) => `10.0.${i}.0/24`) })
    await opened.store.registerConsumer(consumerOf(1, 'c1'))
    meter.clear()
    await opened.store.readGroupRecord('orders')
    assert.deepEqual(meter.sum(), { requests: 1, readUnits: 0.5, writeUnits: 0 })
    meter.clear()
    await opened.store.readConsumers([1])
    assert.deepEqual(meter.sum(), { requests: 1, readUnits: 1, writeUnits: 0 })
  })

  test('a poll that is told its queues reads 12 of them, with their owners, for a unit', async () => {
    await opened.store.createGroup(group)
    await opened.store.createSubscription(subscriptionOf('orders', 'orders'))
    for (let id = 1; id <= 12; id++) {
      const owned = { consumerId: (id % 4) + 1, offset: 1_000_000, offsetVersion: 12, committedAtMs: now }
      await opened.store.addQueueOffset({ ...offset, ...owned, queueOffsetId: id, queueId: id })
    }
    for (let id = 1; id <= 4; id++) {
      await opened.store.registerConsumer(consumerOf(id, `c${id}`))
      await opened.store.joinGroup(memberOf('orders', id, { joinedAtMs: now }))
    }
    meter.clear()
    await opened.store.readGroup('orders')
    assert.deepEqual(meter.sum(), { requests: 1, readUnits: 1, writeUnits: 0 })
  })

  test('what a group subscribes to is one query, which reads nothing else of the group', async () => {
    await opened.store.createGroup(group)
    for (let id = 1; id <= 40; id++) {
      await opened.store.addQueueOffset({ ...offset, queueOffsetId: id, queueId: id })
    }
    for (let i = 0; i < 15; i++) await opened.store.createSubscription(subscriptionOf('orders', `topic-${i}`))
    meter.clear()
    assert.equal((await opened.store.readSubscriptions('orders')).length, 15)
    assert.deepEqual(meter.sum(), { requests: 1, readUnits: 1, writeUnits: 0 })
  })

  test('what changes a group costs what its comment says: two units for each item of a transaction', async () => {
    const { store } = opened
    const subEnvCopy = groupOf('orders_blue', { origin: { groupName: 'orders', subEnv: 'blue' } })
    const ownCopy = groupOf('orders~1', { origin: { groupName: 'orders', consumerId: 1 } })
    const open = { allowedIps: [], deniedIps: [], maxConsumers: 2 }
    const steps: [Operation, () => Promise<unknown>, string, number][] = [
      ['createTopic', () => store.createTopic(topicOf('orders'), [queueOf('orders', queueId)]), 'created', 8],
      ['addQueues', () => store.addQueues('orders', [queueOf('orders', 9)], 0), 'added', 6],
      ['setReadOnly', () => store.setReadOnly('orders', queueId, 1), 'set', 1],
      ['createGroup', () => store.createGroup(group), 'created', 4],
      ['createGroup', () => store.createGroup(subEnvCopy), 'created', 8],
      ['createGroup', () => store.createGroup(ownCopy), 'created', 6],
      ['updateGroup', () => store.updateGroup('orders', open), 'updated', 4],
      ['addQueueOffset', () => store.addQueueOffset(offset), 'created', 6],
      ['createSubscription', () => store.createSubscription(subscriptionOf('orders', 'orders')), 'created', 10],
      [
        'createSubscription',
        () => store.createSubscription(subscriptionOf('orders~1', 'orders'), 'consumer_copy'),
        'created',
        4,
      ],
      ['resetOffset', () => store.resetOffset(place, 3), 'reset', 4],
      ['setStopped', () => store.setStopped(place, true), 'set', 4],
      ['registerConsumer', async () => String(await store.registerConsumer(consumerOf(1, 'c1'))), '1', 6],
      ['joinGroup', () => store.joinGroup(memberOf('orders', 1)), 'joined', 6],
      ['joinGroup', () => store.joinGroup(memberOf('orders', 1)), 'joined', 6],
      ['loseMember', () => store.loseMember('orders', 1), 'lost', 1],
      ['joinGroup', () => store.joinGroup(memberOf('orders', 1)), 'joined', 6],
      ['stopMember', () => store.stopMember('orders', 1), 'noted', 1],
      ['leaveGroup', () => store.leaveGroup('orders', 1), 'left', 1],
      ['askRebalance', async () => (await store.askRebalance('orders'))?.name ?? '', 'orders', 2],
      ['removeSubscription', () => store.removeSubscription('orders', 'orders'), 'removed', 10],
      ['removeSubscription', () => store.removeSubscription('orders~1', 'orders', 'consumer_copy'), 'removed', 4],
      ['removeQueueOffset', () => store.removeQueueOffset(offset, 'unsubscribed'), 'removed', 6],
      ['removeGroup', () => store.removeGroup(subEnvCopy), 'removed', 8],
      ['removeGroup', async () => store.removeGroup((await store.readGroupRecord('orders')) ?? group), 'removed', 6],
      ['removeQueue', () => store.removeQueue('orders', queueId), 'removed', 1],
      ['beginTopicRemoval', () => store.beginTopicRemoval('orders', 'a'), 'begun', 4],
      ['removeTopicQueues', () => store.removeTopicQueues('orders', 'a', [9]), 'removed', 4],
      ['removeTopic', () => store.removeTopic('orders', 'a', 5), 'removed', 6],
    ]
    for (const [operation, act, outcome, writeUnits] of steps) {
      meter.clear()
      assert.equal(await act(), outcome, operation)
      const requests = operation === 'askRebalance' ? 2 : 1
      assert.deepEqual(meter.of(operation), { requests, readUnits: 0, writeUnits }, operation)
    }
  })

  test('an act in the audit log is two writes, of a unit for each KB of the entry as it is then', async () => {
    const entryId = entryIdOf(now, 'q3n0dW5r8yKc')
    const caller = { who: 'arn:aws:sts::123456789012:assumed-role/operator/ann', ip: '203.0.113.7' }
    const act = { act: 'updateGroup', entity: 'group:orders', parameters: '{"groupName":"orders"}', request: '{}' }
    const view = JSON.stringify({ a: 'x'.repeat(1_000) })
    const entry = { entryId, askedAtMs: now, ...caller, ...act, outcome: 'asked', before: view } as const
    await opened.store.addAuditEntry(entry)
    assert.deepEqual(meter.sum(), { requests: 1, readUnits: 0, writeUnits: 2 })
    meter.clear()
    await opened.store.endAuditEntry(entryId, { outcome: 'done', endedAtMs: now + 41, after: view })
    assert.deepEqual(meter.sum(), { requests: 1, readUnits: 0, writeUnits: 3 })
    meter.clear()
    await opened.store.listAuditEntries({ month: '2027-01', below: boundOf(now + 1), limit: 100 })
    assert.deepEqual(meter.sum(), { requests: 1, readUnits: 1, writeUnits: 0 })
  })

  test('a hint is a read of the targets and two writes; making one is a transaction', async () => {
    const { store } = opened
    const target = targetOf({ groupName: 'orders' }, 'hook')
    const costs: [Operation, () => Promise<unknown>, unknown, { readUnits: number; writeUnits: number }][] = [
      ['createTarget', () => store.createTarget(target), 'created', { readUnits: 0, writeUnits: 4 }],
      ['readTargets', () => store.readTargets(target.owner), [target], { readUnits: 1, writeUnits: 0 }],
      [
        'replaceTarget',
        () => store.replaceTarget({ ...target, revision: 2 }),
        { outcome: 'replaced' },
        { readUnits: 0, writeUnits: 1 },
      ],
      [
        'replaceTarget',
        () => store.replaceTarget({ ...target, revision: 2 }),
        { outcome: 'conflict', current: { ...target, revision: 2 } },
        { readUnits: 0, writeUnits: 1 },
      ],
      [
        'addDelivery',
        () =>
          store.addDelivery(target, {
            deliveryId: 'msg_q3n0dW5r8yKc',
            atMs: now,
            durationMs: 41,
            outcome: 'succeeded',
            what: 'hint',
            queueIds: [7],
            status: 204,
          }),
        undefined,
        { readUnits: 0, writeUnits: 1 },
      ],
      ['listGroupsWithTargets', () => store.listGroupsWithTargets(), ['orders'], { readUnits: 1, writeUnits: 0 }],
      ['removeTarget', () => store.removeTarget(target), 'removed', { readUnits: 0, writeUnits: 4 }],
    ]
    for (const [operation, act, answer, units] of costs) {
      meter.clear()
      assert.deepEqual(await act(), answer)
      assert.deepEqual(meter.sum(), { requests: 1, ...units }, operation)
    }
  })

  test('an alarm is a write when it begins, one when it was told, and the same at its end; all are one query', async () => {
    const alarm = {
      kind: 'lag',
      groupName: 'orders',
      topicName: 'orders',
      facts: { messages: 7 },
      raisedAtMs: now,
    } as const
    for (const [answer, revision] of [
      ['put', 1],
      ['conflict', 1],
      ['put', 2],
    ] as const) {
      meter.clear()
      assert.equal(await opened.store.putAlarm({ ...alarm, isTold: revision > 1, revision }), answer)
      assert.deepEqual(meter.sum(), { requests: 1, readUnits: 0, writeUnits: 1 })
    }
    meter.clear()
    assert.equal((await opened.store.listAlarms()).length, 1)
    assert.deepEqual(meter.sum(), { requests: 1, readUnits: 1, writeUnits: 0 })
  })

  test('newcomers are one query, of one unit while there are a few', async () => {
    for (let id = 1; id <= 20; id++) await opened.store.registerConsumer(consumerOf(id, `c${id}`))
    meter.clear()
    assert.equal((await opened.store.listNewcomers()).length, 20)
    assert.deepEqual(meter.sum(), { requests: 1, readUnits: 1, writeUnits: 0 })
  })
})

const group = groupOf('orders')
const offset = offsetOf('orders', 7, { queueId })
const place = { groupName: 'orders', queueOffsetId: 7 }
const now = 1_800_000_000_000
