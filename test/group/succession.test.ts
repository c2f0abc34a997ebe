import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { registerConsumerGroup } from '../../core/client/register-group.ts'
import { rebalance } from '../../core/group/rebalance.ts'
import { createContainer } from '../log/containers.ts'
import { consumerOf } from '../store/contract.ts'
import { createManualClock, type ManualClock } from '../support/manual-clock.ts'
import { groupName, makeGroup, nowMs, openRegistry, ownersOf, type Registry, read, topicName } from './groups.ts'

describe('the queues of a place', () => {
  let registry: Registry
  let clock: ManualClock
  beforeEach(() => {
    registry = openRegistry()
    clock = createManualClock(nowMs)
  })
  afterEach(() => registry.close())

  const core = () => createContainer(registry.store, { clock })
  const start = async (consumerId: number, instanceId = 'place', topicNames = [topicName]) => {
    const { store } = registry
    await store.registerConsumer(consumerOf(consumerId, `consumer-${consumerId}`, { heartbeatAtMs: clock.now() }))
    const consumerGroupNames = { [groupName]: topicNames }
    const { suc, msg } = await registerConsumerGroup(core(), { consumerId, instanceId, consumerGroupNames })
    assert.equal(suc, true, msg)
  }
  const owners = async () => ownersOf(await read(registry.store))

  test('go to the last of several that started one after the other, with no rebalance in between', async () => {
    await makeGroup(registry.store, { owners: [1, 1, 2, 2, 2, 2], members: [1] })
    for (const consumerId of [2, 3, 4, 5, 6]) await start(consumerId)
    await rebalance(core(), groupName)
    // Without its predecessors the last one would be given three as a newcomer.
    assert.deepEqual((await owners()).filter(owner => owner === 6).length, 3)
    const { offsets, members } = await read(registry.store)
    assert.deepEqual(
      members.map(member => member.consumerId),
      [1, 6],
    )
    assert.deepEqual(
      offsets.slice(0, 2).map(({ consumerId, offsetVersion }) => [consumerId, offsetVersion]),
      [
        [1, 1],
        [1, 1],
      ],
    )
    // What stays with a place is fenced at once, and leaves nobody.
    for (const { consumerId, nextConsumerId } of offsets.slice(2)) {
      assert.ok(consumerId === 6 || consumerId === 1)
      assert.equal(nextConsumerId, undefined)
    }
  })

  test('have higher versions with each successor', async () => {
    await makeGroup(registry.store, { owners: [1, 2], members: [1] })
    await start(2)
    const versions: number[] = []
    for (const consumerId of [3, 4, 5]) {
      await start(consumerId)
      await rebalance(core(), groupName)
      const [other, queue] = (await read(registry.store)).offsets
      assert.deepEqual([other?.consumerId, other?.offsetVersion, queue?.consumerId], [1, 1, consumerId])
      versions.push(queue?.offsetVersion ?? 0)
    }
    assert.deepEqual(versions, [2, 3, 4])
  })

  test('stay the place’s where its holder asks again before the rebalance', async () => {
    await makeGroup(registry.store, { owners: [1, 2, 2], members: [1] })
    await start(2)
    await start(3)
    await start(3)
    await rebalance(core(), groupName)
    assert.deepEqual(await owners(), [1, 3, 3])
  })

  test('are not given to a successor that does not handle their topic', async () => {
    await makeGroup(registry.store, { owners: [1, 2], members: [1] })
    await start(2)
    await start(3, 'place', [])
    await rebalance(core(), groupName)
    assert.deepEqual(await owners(), [1, 1])
  })

  test('go to others where the one that was replaced starts at another place', async () => {
    await makeGroup(registry.store, { owners: [1, 2, 2], members: [1] })
    await start(2)
    await start(3)
    await rebalance(core(), groupName)
    await start(4, 'another place')
    await rebalance(core(), groupName)
    assert.deepEqual((await owners()).toSorted(), [1, 3, 4])
  })
})
