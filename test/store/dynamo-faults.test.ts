import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import type { Batch, Consumer } from '../../core/model.ts'
import type { Clock } from '../../core/protocol/clock.ts'
import { systemClock } from '../../core/protocol/clock.ts'
import { StoreError } from '../../core/store.ts'
import { openTestStore, type TestStore } from '../support/dynamo-store.ts'
import { dynoxide, type RunningEngine } from '../support/engines.ts'
import type { FaultKind } from '../support/faults.ts'
import { groupOf, memberOf, offsetOf } from './contract.ts'

const engine = dynoxide()
const queueId = 1

describe('the store under the faults of DynamoDB', { skip: engine.skip ?? false }, () => {
  let running: RunningEngine
  let opened: TestStore
  let waitedMs: number[]
  let whileWaiting: (() => Promise<void>) | undefined
  /** Its waits pass at once, and what happens meanwhile happens once. */
  const clock: Clock = {
    ...systemClock,
    sleep: async ms => {
      waitedMs.push(ms)
      const happening = whileWaiting
      whileWaiting = undefined
      await happening?.()
    },
  }

  before(async () => {
    running = await engine.start()
  })
  after(() => running?.stop())
  beforeEach(async () => {
    waitedMs = []
    whileWaiting = undefined
    opened = await openTestStore(running, { clock, faults: { seed: 1, clock } })
  })
  afterEach(() => opened.close())

  const meet = (...kinds: (FaultKind | 'none')[]) => {
    opened.faults.next.push(...kinds)
  }
  const readAll = () =>
    opened.store.readBatches({ queueId, fromOffset: 1, maxBatches: 1000, maxBytes: 1e6, consistent: true })

  describe('an append', () => {
    test('that is throttled answers so at once, and nothing is stored', async () => {
      meet('throttle')
      assert.deepEqual(await opened.store.appendBatch(batchAt(1)), { outcome: 'throttled' })
      assert.equal(opened.faults.requests, 1)
      assert.deepEqual(await readAll(), [])
    })

    test('that meets another transaction was not applied: throttled', async () => {
      meet('conflict')
      assert.deepEqual(await opened.store.appendBatch(batchAt(1)), { outcome: 'throttled' })
      assert.deepEqual(await readAll(), [])
    })

    test('whose answer is lost is unknown, is sent once, and is there', async () => {
      meet('loseAnswer')
      assert.equal((await opened.store.appendBatch(batchAt(1))).outcome, 'unknown')
      assert.equal(opened.faults.requests, 1)
      assert.deepEqual(await readAll(), [batchAt(1)])
    })

    test('whose request is lost is unknown, and is not there', async () => {
      meet('loseRequest')
      assert.equal((await opened.store.appendBatch(batchAt(1))).outcome, 'unknown')
      assert.deepEqual(await readAll(), [])
    })

    test('that fails with a server error is unknown', async () => {
      meet('serverError')
      assert.equal((await opened.store.appendBatch(batchAt(1))).outcome, 'unknown')
    })

    test('sent again after its answer was lost finds itself as the winner', async () => {
      meet('loseAnswer')
      await opened.store.appendBatch(batchAt(1))
      const again = await opened.store.appendBatch(batchAt(1))
      assert.equal(again.outcome, 'taken')
      assert.equal(again.outcome === 'taken' && again.winner.publishId, batchAt(1).publishId)
    })
  })

  describe('a read', () => {
    for (const kind of ['throttle', 'loseRequest', 'loseAnswer', 'serverError'] as const) {
      test(`is repeated after ${kind}`, async () => {
        await opened.store.appendBatch(batchAt(1))
        meet(kind)
        assert.deepEqual(await readAll(), [batchAt(1)])
        assert.equal(waitedMs.length, 1)
      })
    }

    test('gives up after some repeats, and says which kind of failure it was', async () => {
      opened.faults.rates = { throttle: 1 }
      await assert.rejects(readAll(), isStoreError('throttled'))
      opened.faults.rates = { loseRequest: 1 }
      await assert.rejects(readAll(), isStoreError('unavailable'))
    })

    test('of many consumers asks again for what was left unprocessed', async () => {
      const ids = Array.from({ length: 130 }, (_, i) => i + 1)
      await Promise.all(ids.map(id => opened.store.registerConsumer(consumer(id))))
      meet('unprocessed', 'unprocessed')
      const found = await opened.store.readConsumers([...ids, 5, 999])
      assert.deepEqual(
        found.map(each => each.consumerId),
        ids,
      )
      assert.equal(opened.faults.counts.unprocessed, 2)
    })

    test('that does not ask for consistency may miss what is recent, however it is paged', async () => {
      for (let i = 0; i < 10; i++) await opened.store.appendBatch(batchAt(1 + i * 10))
      opened.faults.rates = { stale: 1 }
      const seen = new Set<string>()
      for (let i = 0; i < 50; i++) {
        const read = await opened.store.readBatches({
          queueId,
          fromOffset: 1,
          maxBatches: 7,
          maxBytes: 1e6,
          consistent: false,
        })
        const bases = read.map(batch => batch.base)
        seen.add(bases.join())
        assert.deepEqual(
          bases,
          bases.toSorted((a, b) => a - b),
        )
        assert.deepEqual(bases.slice(0, 2), [1, 11], 'what is older than the window is always there')
      }
      assert.ok(seen.size > 5)
      assert.ok(opened.faults.counts.stale > 30)
      assert.equal((await readAll()).length, 10)
    })

    test('of a group record may be answered with its former state', async () => {
      await opened.store.createGroup(group)
      await opened.store.readGroupRecord('orders')
      await opened.store.raiseMeta('orders')
      meet('stale')
      assert.equal((await opened.store.readGroupRecord('orders'))?.version, 1)
      assert.equal((await opened.store.readGroupRecord('orders'))?.version, 2)
    })
  })

  describe('a commit', () => {
    beforeEach(async () => {
      await opened.store.createGroup(group)
      await opened.store.addQueueOffset(offset)
    })
    const commit = { groupName: 'orders', queueOffsetId: 7, offsetVersion: 0, offset: 5, release: false, nowMs: 5 }

    test('is repeated after a lost answer, and finds itself done', async () => {
      meet('loseAnswer')
      assert.deepEqual(await opened.store.commitOffset(commit), {
        outcome: 'unchanged',
        offset: 5,
        offsetVersion: 0,
        handedOver: false,
      })
    })

    test('is repeated after it was throttled', async () => {
      meet('throttle', 'conflict', 'throttle')
      assert.deepEqual(await opened.store.commitOffset(commit), {
        outcome: 'advanced',
        offset: 5,
        offsetVersion: 0,
        handedOver: false,
      })
    })

    test('that releases is not repeated where it may have been applied', async () => {
      meet('loseAnswer')
      await assert.rejects(
        opened.store.commitOffset({ ...commit, release: true, nowMs: 5 }),
        isStoreError('unavailable'),
      )
      assert.deepEqual(await opened.store.commitOffset({ ...commit, release: true, nowMs: 5 }), {
        outcome: 'fenced',
        offset: 5,
        offsetVersion: 1,
      })
    })

    test('is given up as throttled only if none of its attempts can have been applied', async () => {
      opened.faults.rates = { throttle: 1 }
      await assert.rejects(opened.store.commitOffset(commit), isStoreError('throttled'))
      meet('loseAnswer')
      await assert.rejects(opened.store.commitOffset(commit), isStoreError('unavailable'))
    })
  })

  describe('a transaction', () => {
    test('is repeated, after a wait, when it meets another one', async () => {
      meet('conflict', 'conflict')
      assert.equal(await opened.store.createGroup(group), 'created')
      assert.equal(waitedMs.length, 2)
    })

    test('is repeated when it is throttled', async () => {
      meet('throttle')
      assert.equal(await opened.store.createGroup(group), 'created')
    })

    test('that meets others over and over is given up as throttled', async () => {
      opened.faults.rates = { conflict: 1 }
      await assert.rejects(opened.store.createGroup(group), isStoreError('throttled'))
      opened.faults.rates = {}
      assert.equal(await opened.store.readGroup('orders'), undefined)
    })

    test('whose answer tells who did it is not repeated where it may have been applied', async () => {
      meet('loseAnswer')
      await assert.rejects(opened.store.createGroup(group), isStoreError('unavailable'))
      assert.equal(await opened.store.createGroup(group), 'exists')
    })

    test('that registers a consumer finds what its own lost attempt has written', async () => {
      meet('loseAnswer')
      assert.equal(await opened.store.registerConsumer(consumer(3)), 3)
    })

    test('that joins a group is repeated, and the consumer is in it once', async () => {
      await opened.store.createGroup(group)
      await opened.store.registerConsumer(consumer(3))
      meet('loseAnswer')
      const member = memberOf('orders', 3)
      assert.equal(await opened.store.joinGroup(member), 'joined')
      assert.deepEqual((await opened.store.readGroup('orders'))?.members, [member])
    })
  })

  test('a removed consumer is answered with the groups that it is in then, whatever happened since it was read', async () => {
    await opened.store.createGroup(group)
    await opened.store.createGroup({ ...group, name: 'bills' })
    await opened.store.registerConsumer(consumer(3))
    const join = (groupName: string) => opened.store.joinGroup(memberOf(groupName, 3))
    await join('orders')
    // The removal has read the consumer when it meets a conflict; while it waits, the consumer joins another group.
    meet('none', 'conflict')
    whileWaiting = async () => {
      assert.equal(await join('bills'), 'joined')
    }
    const removed = await opened.store.removeConsumer(3, { heartbeatBeforeMs: 2 })
    assert.deepEqual(removed?.groupNames, ['bills', 'orders'])
    assert.deepEqual(await opened.store.readConsumers([3]), [])
  })

  test('a consumer whose heartbeat comes while it is being removed stays', async () => {
    await opened.store.registerConsumer(consumer(3))
    meet('none', 'conflict')
    whileWaiting = async () => {
      await opened.store.heartbeat(3, 5)
    }
    assert.equal(await opened.store.removeConsumer(3, { heartbeatBeforeMs: 2 }), undefined)
    assert.deepEqual(await opened.store.readConsumers([3]), [{ ...consumer(3), heartbeatAtMs: 5 }])
  })

  test('a wrong request is no outage: it is thrown as it came', async () => {
    await assert.rejects(
      opened.store.appendBatch({ ...batchAt(1), base: Number.NaN }),
      (error: unknown) => error instanceof Error && error.name === 'ValidationException',
    )
  })

  test('ids are never given out twice, whatever is lost', async () => {
    opened.faults.rates = { loseAnswer: 0.2, loseRequest: 0.1, throttle: 0.1, late: 0.3 }
    const takes = await Promise.allSettled(Array.from({ length: 100 }, () => opened.store.takeIds('queue', 2)))
    const firsts = takes.flatMap(take => (take.status === 'fulfilled' ? [take.value] : []))
    assert.ok(firsts.length > 80)
    assert.equal(new Set(firsts.flatMap(first => [first, first + 1])).size, 2 * firsts.length)
    assert.ok(opened.faults.counts.loseAnswer > 5 && opened.faults.counts.late > 5)
  })
})

describe('a group put to sleep while it is asked something', { skip: engine.skip ?? false }, () => {
  test('stays awake for whatever was asked after the tick had looked', async () => {
    const running = await engine.start()
    const { store, close } = await openTestStore(running)
    try {
      await store.createGroup(group)
      await store.askRebalance('orders')
      const slowTick = await store.listAwakeGroups()
      for (const awake of await store.listAwakeGroups()) await store.sleepGroup(awake)
      assert.deepEqual(await store.listAwakeGroups(), [])
      await store.askRebalance('orders')
      for (const awake of slowTick) await store.sleepGroup(awake)
      assert.equal((await store.listAwakeGroups()).length, 1)
    } finally {
      await close()
      await running.stop()
    }
  })
})

const isStoreError = (kind: StoreError['kind']) => (error: unknown) =>
  error instanceof StoreError && error.kind === kind && error.cause instanceof Error

const batchAt = (base: number): Batch => ({
  queueId,
  base,
  count: 10,
  publishId: `publish-${base}`,
  appendedAtMs: 1_800_000_000_000,
  expiresAtMs: 1_800_086_400_000,
  codec: 0,
  bytes: new TextEncoder().encode(`batch at ${base}`),
})

const consumer = (consumerId: number): Consumer => ({
  consumerId,
  name: `c${consumerId}`,
  ip: '10.0.0.1',
  sdkVersion: '1',
  lan: 'node',
  heartbeatAtMs: 1,
  groupNames: [],
})

const group = groupOf('orders')
const offset = offsetOf('orders', 7, { queueId })
