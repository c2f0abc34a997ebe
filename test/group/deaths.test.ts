import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { claimQueues } from '../../core/client/claims.ts'
import { commitOffset } from '../../core/client/commit.ts'
import { deRegister } from '../../core/client/deregister.ts'
import { getConsumerGroupPolling } from '../../core/client/poll.ts'
import { register } from '../../core/client/register.ts'
import { registerConsumerGroup } from '../../core/client/register-group.ts'
import type { Core } from '../../core/core.ts'
import { viewDeaths } from '../../core/group/deaths.ts'
import { rebalance } from '../../core/group/rebalance.ts'
import { tick } from '../../core/tick/tick.ts'
import { createContainer } from '../log/containers.ts'
import { batchOf, groupOf, offsetOf, queueOf, subscriptionOf, topicOf } from '../store/contract.ts'
import { createManualClock, type ManualClock } from '../support/manual-clock.ts'
import { groupName, makeGroup, nowMs, openRegistry, type Registry, read, topicName } from './groups.ts'

const sessionTimeoutMs = 30_000

describe('owners that are lost', () => {
  let registry: Registry
  let clock: ManualClock
  let core: Core
  beforeEach(() => {
    registry = openRegistry()
    clock = createManualClock(nowMs)
    core = createContainer(registry.store, { clock })
  })
  afterEach(() => registry.close())

  /** So that whoever is not heard of any more is given up. */
  const giveUp = async (...living: number[]) => {
    for (const share of [0.75, 0.75]) {
      clock.step(share * sessionTimeoutMs)
      for (const consumerId of living) await registry.store.heartbeat(consumerId, clock.now())
      assert.deepEqual((await tick(core)).failed, [])
    }
  }
  const deaths = async () => (await read(registry.store)).offsets.map(offset => offset.deaths?.count ?? 0)
  const commit = async (queueId: number, offset: number, trialOffset?: number) => {
    const place = (await read(registry.store)).offsets.find(found => found.queueId === queueId)
    assert.ok(place)
    const { queueOffsetId, offsetVersion } = place
    const entry = { queueOffsetId, offsetVersion, offset, consumerGroupName: groupName, trialOffset }
    const { results } = await commitOffset(core, { queueOffsets: [entry], flag: 0 })
    return results?.[0]?.outcome
  }
  /** The queues are there to be committed. */
  const fill = async (count: number, ...queueIds: number[]) => {
    for (const queueId of queueIds) {
      await registry.store.appendBatch(batchOf(queueId, 1, { count, expiresAtMs: nowMs + 90_000_000 }))
    }
  }

  test('are counted by each of their queues until somebody gets on with it', async () => {
    await fill(20, 1, 2, 3)
    await makeGroup(registry.store, { owners: [1, 2, 2], members: [1, 2] })
    await giveUp(1)
    assert.deepEqual(await deaths(), [0, 1, 1])
    assert.deepEqual((await read(registry.store)).lost, [])
    assert.equal(await commit(2, 11), 'advanced')
    assert.deepEqual(await deaths(), [0, 0, 1])
    await giveUp()
    assert.deepEqual(await deaths(), [1, 1, 2])
    assert.deepEqual(
      (await read(registry.store)).offsets.map(({ consumerId }) => consumerId),
      [0, 0, 0],
    )
  })

  test('are told to the next owner, with what they had on trial', async () => {
    await fill(20, 1, 2)
    await makeGroup(registry.store, { owners: [2, 2], members: [1, 2] })
    await commit(1, 10, 11)
    // What its owner has on trial itself, nobody suspects.
    const told = async (consumerId: number) => {
      const answer = await getConsumerGroupPolling(core, {
        consumerId,
        consumerGroupVersion: { [groupName]: 0 },
        waitMs: 0,
      })
      const queues = Object.values(answer.consumerGroups?.[groupName]?.queues ?? {})
      return queues.map(queue => [queue.deaths, queue.suspectOffset])
    }
    assert.deepEqual(await told(2), [
      [undefined, undefined],
      [undefined, undefined],
    ])
    await giveUp(1)
    assert.deepEqual(await told(1), [
      [1, 11],
      [1, undefined],
    ])
    await commit(1, 10, 12)
    clock.advance(1_000)
    assert.deepEqual((await told(1))[0], [1, undefined])
  })

  test('leave no suspect behind that was done by then', async () => {
    await fill(20, 1)
    await makeGroup(registry.store, { owners: [2], members: [1, 2] })
    await commit(1, 10, 12)
    const { offsets } = await read(registry.store)
    const { trial = assert.fail(), ...place } = offsets[0] ?? assert.fail()
    const deaths = { count: 1, offsetVersion: place.offsetVersion }
    assert.deepEqual(viewDeaths({ ...place, trial, deaths }), { deaths: 1, suspectOffset: 12, suspectFailures: 1 })
    assert.deepEqual(viewDeaths({ ...place, trial, deaths, offset: 12 }), { deaths: 1 })
    assert.deepEqual(viewDeaths({ ...place, trial }), {})
    const later = { ...trial, offsetVersion: place.offsetVersion + 1 }
    assert.deepEqual(viewDeaths({ ...place, trial: later, deaths }), { deaths: 1 }, 'of one that was not lost')
  })

  test('are none of those who leave, before they have got on or after', async () => {
    await makeGroup(registry.store, { owners: [1, 2, 2], members: [1, 2] })
    await deRegister(core, { id: 2 })
    await rebalance(core, groupName)
    assert.deepEqual(await deaths(), [0, 0, 0])
    await deRegister(core, { id: 1 })
    await rebalance(core, groupName)
    assert.deepEqual(await deaths(), [0, 0, 0])
  })

  test('are none of those who take too long to hand a queue over', async () => {
    await makeGroup(registry.store, { owners: [1, 1], members: [1, 2] })
    await rebalance(core, groupName)
    clock.step(120_000)
    await registry.store.heartbeat(1, clock.now())
    await registry.store.heartbeat(2, clock.now())
    await rebalance(core, groupName)
    const { offsets } = await read(registry.store)
    assert.deepEqual(offsets.map(offset => offset.consumerId).toSorted(), [1, 2])
    assert.deepEqual(await deaths(), [0, 0])
  })

  test('are none of those that come back to their queues after the store was away', async () => {
    await makeGroup(registry.store, { owners: [1, 2], members: [1, 2] })
    assert.deepEqual((await tick(core)).failed, [])
    clock.step(600_000)
    assert.deepEqual((await tick(core)).failed, [])
    clock.step(5_000)
    await registry.store.heartbeat(1, clock.now())
    await registry.store.heartbeat(2, clock.now())
    for (let beats = 0; beats < 6; beats++) {
      clock.step(10_000)
      await registry.store.heartbeat(1, clock.now())
      await registry.store.heartbeat(2, clock.now())
      assert.deepEqual((await tick(core)).failed, [])
    }
    const { offsets } = await read(registry.store)
    assert.deepEqual(
      offsets.map(({ consumerId, deaths }) => [consumerId, deaths]),
      [
        [1, undefined],
        [2, undefined],
      ],
    )
  })

  describe('at a place', () => {
    const start = async () => {
      const registered = await register(core, { name: `pod ${clock.now()}`, clientIp: '10.0.0.1', sdkVersion: '1' })
      const consumerId = registered.id ?? 0
      const consumerGroupNames = { [groupName]: [topicName] }
      const { suc } = await registerConsumerGroup(core, { consumerId, instanceId: 'place', consumerGroupNames })
      assert.ok(suc)
      clock.step(1)
      await rebalance(core, groupName)
      return consumerId
    }

    test('are counted when another one takes the place of one that did not stop', async () => {
      await makeGroup(registry.store, { owners: [0, 0], members: [] })
      await start()
      assert.deepEqual(await deaths(), [0, 0])
      await start()
      assert.deepEqual(await deaths(), [1, 1])
      const last = await start()
      assert.deepEqual(await deaths(), [2, 2])
      const { members, lost, offsets } = await read(registry.store)
      assert.deepEqual(
        offsets.map(offset => offset.consumerId),
        [last, last],
      )
      assert.deepEqual([members.length, lost], [1, []])
    })

    test('are counted also where the rebalance comes when they have been let go', async () => {
      await makeGroup(registry.store, { owners: [1, 1], members: [] })
      await registry.store.registerConsumer({
        consumerId: 1,
        name: 'pod',
        ip: '10.0.0.1',
        sdkVersion: '1',
        lan: '',
        heartbeatAtMs: nowMs,
        groupNames: [],
      })
      await registry.store.takeIds('consumer', 1)
      await registry.store.joinGroup({
        groupName,
        consumerId: 1,
        consumerName: 'pod',
        ip: '10.0.0.1',
        instanceId: 'place',
        predecessors: [],
        topicNames: [topicName],
        joinedAtMs: nowMs,
      })
      // The bus carries no word of it: the rebalance is the last of all.
      await start()
      assert.deepEqual(await deaths(), [1, 1])
    })

    test('are none where the former one has stopped, whoever comes, or nobody', async () => {
      await makeGroup(registry.store, { owners: [0, 0], members: [] })
      const first = await start()
      await deRegister(core, { id: first, keepsPlace: true })
      const second = await start()
      assert.deepEqual(await deaths(), [0, 0])
      await deRegister(core, { id: second, keepsPlace: true })
      await giveUp()
      const { members, lost, offsets } = await read(registry.store)
      assert.deepEqual([members, lost], [[], []])
      assert.deepEqual(
        offsets.map(({ consumerId, deaths }) => [consumerId, deaths]),
        [
          [0, undefined],
          [0, undefined],
        ],
      )
    })

    test('keep their place while they have stopped', async () => {
      await makeGroup(registry.store, { owners: [0, 0], members: [] })
      const first = await start()
      await deRegister(core, { id: first, keepsPlace: true })
      await rebalance(core, groupName)
      assert.deepEqual(
        (await read(registry.store)).offsets.map(offset => offset.consumerId),
        [first, first],
      )
    })
  })

  describe('by a lease', () => {
    const claim = async (claimant: string, holdingQueueIds?: number[]) => {
      const { queues = {} } = await claimQueues(core, {
        consumerGroupName: groupName,
        claimant,
        maxQueues: 1,
        leaseMs: 10_000,
        ...(holdingQueueIds && { holdingQueueIds }),
      })
      return Object.values(queues)[0]
    }
    const release = (queue: { queueOffsetId: number; offsetVersion: number; offset: number }) => {
      const { queueOffsetId, offsetVersion, offset } = queue
      return commitOffset(core, {
        queueOffsets: [{ queueOffsetId, offsetVersion, offset, consumerGroupName: groupName }],
        flag: 1,
      })
    }
    beforeEach(async () => {
      await registry.store.createTopic(topicOf(topicName), [queueOf(topicName, 1)])
      await registry.store.createGroup(groupOf(groupName, { mode: 'claimed' }))
      await registry.store.createSubscription(subscriptionOf(groupName, topicName))
      await registry.store.addQueueOffset(offsetOf(groupName, 1))
      await fill(20, 1)
    })

    test('are counted when it ends without a release, and told with what they had on trial', async () => {
      assert.equal((await claim('ann'))?.deaths, undefined)
      clock.step(10_000)
      assert.equal((await claim('bob'))?.deaths, 1)
      assert.equal(await commit(1, 0, 1), 'unchanged')
      clock.step(10_000)
      const third = await claim('cat')
      assert.deepEqual([third?.deaths, third?.suspectOffset], [2, 1])
      assert.equal(await commit(1, 1), 'advanced')
      clock.step(10_000)
      const last = await claim('dan')
      assert.deepEqual([last?.deaths, last?.suspectOffset], [1, undefined])
    })

    test('are none who have released it, nor one that claims again what it did not hear of', async () => {
      const first = await claim('ann')
      assert.ok(first)
      await release(first)
      const second = await claim('bob')
      assert.ok(second)
      assert.equal(second.deaths, undefined)
      const again = await claim('bob', [])
      assert.ok(again && again.offsetVersion > second.offsetVersion)
      assert.equal(again.deaths, undefined)
    })
  })
})
