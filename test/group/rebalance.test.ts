import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { rebalance } from '../../core/group/rebalance.ts'
import type { Store } from '../../core/store.ts'
import { scriptStore } from '../core/scripted-store.ts'
import { createContainer } from '../log/containers.ts'
import { offsetOf, queueOf, subscriptionOf, topicOf } from '../store/contract.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { assertSettled, groupName, join, makeGroup, nowMs, openRegistry, ownersOf, read, topicName } from './groups.ts'

describe('a rebalance', () => {
  let store: Store
  beforeEach(() => {
    store = openRegistry().store
  })
  afterEach(() => store.close())

  const run = (through = store) => rebalance(createContainer(through, { clock: createManualClock(nowMs) }), groupName)
  const owners = async () => ownersOf(await read(store))
  const group = async () => (await read(store)).group

  test('gives the first member all queues, and takes none from it when it asks again', async () => {
    await makeGroup(store, { owners: [0, 0, 0], members: [7] })
    assert.equal(await run(), 'done')
    assert.deepEqual(await owners(), [7, 7, 7])
    const before = await read(store)
    await join(store, 7)
    assert.equal(await run(), 'done')
    const after = await read(store)
    assert.deepEqual(after.offsets, before.offsets)
    assert.equal(after.group.version, before.group.version)
    assertSettled(after)
  })

  test('moves what fairness asks for when a member joins, and back when it leaves', async () => {
    await makeGroup(store, { owners: [1, 1, 1, 1], members: [1, 2] })
    await run()
    assert.deepEqual((await owners()).toSorted(), [1, 1, 2, 2])
    await store.leaveGroup(groupName, 2)
    await run()
    assert.deepEqual(await owners(), [1, 1, 1, 1])
    await store.leaveGroup(groupName, 1)
    await run()
    assert.deepEqual(await owners(), [0, 0, 0, 0])
    assertSettled(await read(store))
  })

  test('asks an owner that lives to leave, with its offsetVersion, and keeps every offset', async () => {
    await makeGroup(store, { owners: [1, 1, 1, 1], members: [1, 2] })
    await run()
    const { offsets, group } = await read(store)
    for (const { consumerId, nextConsumerId, offsetVersion, rbVersion, offset } of offsets) {
      assert.deepEqual([consumerId, offsetVersion, offset], [1, 1, 10])
      assert.equal(rbVersion, nextConsumerId === 2 ? group.rbVersion : 1)
    }
  })

  test('raises the offsetVersion of each queue that it takes from an owner that is gone, and of no other', async () => {
    await makeGroup(store, { owners: [1, 1, 3, 3], members: [1, 2] })
    await run()
    const { offsets } = await read(store)
    assert.deepEqual(
      offsets.map(({ consumerId, offsetVersion }) => [consumerId, offsetVersion]),
      [
        [1, 1],
        [1, 1],
        [2, 2],
        [2, 2],
      ],
    )
  })

  test('raises rbVersion and version once for all that it moves, and says when', async () => {
    await makeGroup(store, { owners: [1, 1, 1, 1], members: [1, 2] })
    const before = await group()
    await run()
    const { rbVersion, version, metaVersion, rebalancedAtMs } = await group()
    assert.deepEqual([rbVersion, version], [before.rbVersion + 1, before.version + 1])
    assert.equal(metaVersion, before.metaVersion)
    assert.equal(rebalancedAtMs, nowMs)
  })

  test('is one read where nothing is owed', async () => {
    await makeGroup(store, { owners: [1, 1, 2], members: [1, 2] })
    await run()
    const { store: watched, calls } = scriptStore(store)
    assert.equal(await run(watched), 'done')
    assert.deepEqual(
      calls.map(call => call.operation),
      ['readGroup'],
    )
  })

  test('of a group that there is not is nothing', async () => {
    assert.equal(await run(), 'unknown_group')
  })

  test('gives a member only queues of topics that it handles, and to nobody those that no member does', async () => {
    await makeGroup(store, { owners: [0, 0], members: [] })
    await join(store, 1, ['another'])
    await run()
    assert.deepEqual(await owners(), [0, 0])
    await join(store, 2)
    await run()
    assert.deepEqual(await owners(), [2, 2])
    await join(store, 1)
    await run()
    assert.deepEqual((await owners()).toSorted(), [1, 2])
    await join(store, 1, [])
    await run()
    assert.deepEqual(await owners(), [2, 2])
    assertSettled(await read(store))
  })

  test('gives the group its place at the beginning of queues that its topic got later', async () => {
    await makeGroup(store, { owners: [1], members: [1] })
    await run()
    await store.addQueues(topicName, [queueOf(topicName, 8)])
    await store.addQueues(topicName, [queueOf(topicName, 9)])
    await store.askRebalance(groupName)
    await run()
    const { offsets } = await read(store)
    assert.deepEqual(
      offsets
        .map(({ queueId, offset, consumerId }) => ({ queueId, offset, consumerId }))
        .sort((a, b) => a.queueId - b.queueId),
      [
        { queueId: 1, offset: 10, consumerId: 1 },
        { queueId: 8, offset: 0, consumerId: 1 },
        { queueId: 9, offset: 0, consumerId: 1 },
      ],
    )
  })

  test('assigns the queues of a topic once the group subscribes to it, and of no other topic', async () => {
    await makeGroup(store, { owners: [1], members: [] })
    await join(store, 1, [topicName, 'bills', 'unwanted'])
    for (const [i, name] of ['bills', 'unwanted'].entries()) {
      await store.createTopic(topicOf(name), [queueOf(name, 20 + i)])
      await store.addQueueOffset(offsetOf(groupName, 20 + i, { topicName: name, queueId: 20 + i }))
    }
    await store.createSubscription(subscriptionOf(groupName, 'bills'))
    await run()
    const { offsets } = await read(store)
    assert.deepEqual(
      offsets.map(offset => [offset.topicName, offset.consumerId]),
      [
        [topicName, 1],
        ['bills', 1],
        ['unwanted', 0],
      ],
    )
  })

  test('begins again where a queue has changed since it was read', async () => {
    await makeGroup(store, { owners: [1, 1], members: [1, 2] })
    const { store: scripted, next } = scriptStore(store)
    next('moveQueue', async call => {
      const released = { groupName, queueOffsetId: 1, offsetVersion: 1, offset: 15, release: true, nowMs }
      await store.commitOffset(released)
      return call.run()
    })
    assert.equal(await run(scripted), 'done')
    const after = await read(store)
    assertSettled(after)
    assert.equal(after.offsets[0]?.offset, 15)
  })

  test('begins again where another run has closed since it read, and tells of what it has moved', async () => {
    await makeGroup(store, { owners: [1, 1, 1], members: [1, 2] })
    const { store: scripted, next } = scriptStore(store)
    next('moveQueue', async call => {
      await store.leaveGroup(groupName, 2)
      await store.askRebalance(groupName)
      await run()
      return call.run()
    })
    const before = await group()
    assert.equal(await run(scripted), 'done')
    assertSettled(await read(store))
    assert.deepEqual(await owners(), [1, 1, 1])
    assert.ok((await group()).rbVersion > before.rbVersion)
  })

  test('takes a queue from an owner that is no member, also where nothing was asked', async () => {
    await makeGroup(store, { owners: [1, 1], members: [1] })
    await run()
    const [offset] = (await read(store)).offsets
    const { rbVersion } = await group()
    const move = {
      groupName,
      queueOffsetId: 1,
      expectedOffsetVersion: offset?.offsetVersion ?? 0,
      expectedConsumerId: 1,
      expectedNextConsumerId: undefined,
      consumerId: 99,
      rbVersion: rbVersion + 1,
    }
    assert.equal(await store.moveQueue(move), 'moved')
    const { rebalanceAsked: asked } = await group()
    await store.finishRebalance({ groupName, asked, moved: true, expectedRbVersion: rbVersion, nowMs })
    await run()
    assert.deepEqual(await owners(), [1, 1])
    assert.equal((await group()).rbVersion, rbVersion + 2)
    assertSettled(await read(store))
  })

  test('tells of a move that a run before it made and did not live to tell', async () => {
    await makeGroup(store, { owners: [1, 1], members: [1, 2] })
    await run()
    const { offsets, group: before } = await read(store)
    for (const { queueOffsetId, offsetVersion, consumerId, nextConsumerId } of offsets) {
      const expected = {
        expectedOffsetVersion: offsetVersion,
        expectedConsumerId: consumerId,
        expectedNextConsumerId: nextConsumerId,
      }
      const move = { groupName, queueOffsetId, ...expected, rbVersion: before.rbVersion + 1 }
      await store.moveQueue({ ...move, consumerId: nextConsumerId ?? 1 })
    }
    await run()
    assert.equal((await group()).rbVersion, before.rbVersion + 1)
    assertSettled(await read(store))
  })

  test('gives up for now after twenty conflicts, and owes the rebalance still', async () => {
    await makeGroup(store, { owners: [1, 1], members: [1, 2] })
    const { store: scripted, next, calls } = scriptStore(store)
    next('finishRebalance', ...Array.from({ length: 40 }, () => ({ answer: 'conflict' })))
    assert.equal(await run(scripted), 'busy')
    assert.equal(calls.filter(call => call.operation === 'finishRebalance').length, 20)
    const { rebalanceAsked, rebalanceDone } = await group()
    assert.ok(rebalanceAsked > rebalanceDone)
    await run()
    assertSettled(await read(store))
  })

  for (const fate of ['lost request', 'lost answer'] as const) {
    for (const operation of ['readGroup', 'readTopic', 'moveQueue', 'finishRebalance'] as const) {
      test(`goes on after one ${fate} of ${operation}, and tells what it moved`, async () => {
        await makeGroup(store, { owners: [1, 1, 1], members: [1, 2] })
        const { store: scripted, next } = scriptStore(store)
        next(operation, fate)
        const before = await group()
        assert.equal(await run(scripted), 'done')
        assertSettled(await read(store))
        assert.ok((await group()).rbVersion > before.rbVersion)
      })
    }
  }

  test('leaves a store that fails again and again to its caller', async () => {
    await makeGroup(store, { owners: [1], members: [1] })
    const { store: scripted, next, calls } = scriptStore(store)
    next('readGroup', ...Array.from({ length: 10 }, () => 'lost request' as const))
    await assert.rejects(run(scripted), { name: 'StoreError' })
    assert.equal(calls.length, 4)
  })

  test('leaves a defect to its caller at once', async () => {
    await makeGroup(store, { owners: [1], members: [1] })
    const { store: scripted, next, calls } = scriptStore(store)
    next('readGroup', () => Promise.reject(new TypeError('a defect')))
    await assert.rejects(run(scripted), TypeError)
    assert.equal(calls.length, 1)
  })
})
