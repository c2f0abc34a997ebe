import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import type { Batch } from '../../core/model.ts'
import { createCapacityMeter } from '../../store/dynamo/meter.ts'
import { openTestStore, type TestStore } from '../support/dynamo-store.ts'
import { dynoxide, type RunningEngine } from '../support/engines.ts'
import { groupOf, offsetOf } from './contract.ts'

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
})

const group = groupOf('orders')
const offset = offsetOf('orders', 7, { queueId })
