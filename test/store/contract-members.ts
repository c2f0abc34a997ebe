import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type ContractScene, consumerOf, groupOf, memberOf } from './contract.ts'

/** The part of the contract that is about joining: who has not yet, and who does so again. */
export function memberContract({ store, unique }: ContractScene): void {
  const register = async () => {
    const consumer = consumerOf(await store().takeIds('consumer', 1), `consumer-${unique()}`)
    assert.equal(await store().registerConsumer(consumer), consumer.consumerId)
    return consumer
  }
  const makeGroup = async () => {
    const name = `group-${unique()}`
    await store().createGroup(groupOf(name))
    return name
  }
  const isNewcomer = async (consumerId: number) => (await store().listNewcomers()).includes(consumerId)

  describe('newcomers', () => {
    test('are those that have registered and joined no group yet', async () => {
      const [one, other] = [await register(), await register()]
      const newcomers = await store().listNewcomers()
      assert.deepEqual(
        newcomers.filter(id => [one.consumerId, other.consumerId].includes(id)),
        [one.consumerId, other.consumerId],
      )
    })

    test('are so once, however often they register', async () => {
      const { consumerId, name } = await register()
      const again = consumerOf(await store().takeIds('consumer', 1), name)
      assert.equal(await store().registerConsumer(again), consumerId)
      const newcomers = await store().listNewcomers()
      assert.equal(newcomers.filter(id => id === consumerId).length, 1)
      assert.equal(newcomers.includes(again.consumerId), false)
    })

    test('are no longer when they have joined a group, also when they leave it or register again', async () => {
      const consumer = await register()
      const { consumerId } = consumer
      const groupName = await makeGroup()
      await store().joinGroup(memberOf(groupName, consumerId))
      assert.equal(await isNewcomer(consumerId), false)
      await store().registerConsumer(consumer)
      assert.equal(await isNewcomer(consumerId), false)
      await store().leaveGroup(groupName, consumerId)
      assert.equal(await isNewcomer(consumerId), false)
    })

    test('stay so when they could not join', async () => {
      const { consumerId } = await register()
      assert.equal(await store().joinGroup(memberOf(`group-${unique()}`, 9_999_999)), 'unknown_consumer')
      assert.ok(await isNewcomer(consumerId))
    })

    test('are gone when they are removed, and only if they are', async () => {
      const { consumerId } = await register()
      await store().removeConsumer(consumerId, { heartbeatBeforeMs: 1_000 })
      assert.ok(await isNewcomer(consumerId))
      assert.ok(await store().removeConsumer(consumerId, { heartbeatBeforeMs: 1_001 }))
      assert.equal(await isNewcomer(consumerId), false)
    })
  })

  describe('members', () => {
    test('come with their address, their place, and whose it was', async () => {
      const { consumerId } = await register()
      const groupName = await makeGroup()
      const member = memberOf(groupName, consumerId, {
        ip: 'fd00::7',
        instanceId: 'pod-0',
        predecessors: [7, 9],
        topicNames: [],
      })
      assert.equal(await store().joinGroup(member), 'joined')
      assert.deepEqual((await store().readGroup(groupName))?.members, [member])
    })

    test('that join again keep when they joined first, and are otherwise as they say then', async () => {
      const { consumerId } = await register()
      const groupName = await makeGroup()
      const first = memberOf(groupName, consumerId, { joinedAtMs: 5_000, instanceId: 'pod-0', predecessors: [7] })
      await store().joinGroup(first)
      const again = memberOf(groupName, consumerId, {
        joinedAtMs: 9_000,
        consumerName: 'other',
        ip: '10.0.0.9',
        topicNames: ['bills'],
        instanceId: 'pod-1',
        predecessors: [],
      })
      assert.equal(await store().joinGroup(again), 'joined')
      assert.deepEqual((await store().readGroup(groupName))?.members, [{ ...again, joinedAtMs: 5_000 }])
      await store().joinGroup({ ...again, joinedAtMs: 1 })
      assert.equal((await store().readGroup(groupName))?.members[0]?.joinedAtMs, 5_000)
    })

    test('that join again without a place give up the one that they had', async () => {
      const { consumerId } = await register()
      const groupName = await makeGroup()
      const plain = memberOf(groupName, consumerId)
      await store().joinGroup({ ...plain, instanceId: 'pod-0', predecessors: [7] })
      await store().joinGroup({ ...plain, instanceId: 'pod-0' })
      assert.deepEqual((await store().readGroup(groupName))?.members, [{ ...plain, instanceId: 'pod-0' }])
      await store().joinGroup(plain)
      assert.deepEqual((await store().readGroup(groupName))?.members, [plain])
    })

    test('that have left join as if for the first time', async () => {
      const { consumerId } = await register()
      const groupName = await makeGroup()
      await store().joinGroup(memberOf(groupName, consumerId, { joinedAtMs: 5_000, instanceId: 'pod-0' }))
      await store().leaveGroup(groupName, consumerId)
      const back = memberOf(groupName, consumerId, { joinedAtMs: 9_000 })
      await store().joinGroup(back)
      assert.deepEqual((await store().readGroup(groupName))?.members, [back])
    })

    test('are one, however often a consumer joins at once', async () => {
      const { consumerId } = await register()
      const groupName = await makeGroup()
      const times = Array.from({ length: 10 }, (_, i) => 5_000 + i)
      const outcomes = await Promise.all(
        times.map(joinedAtMs => store().joinGroup(memberOf(groupName, consumerId, { joinedAtMs }))),
      )
      assert.deepEqual(new Set(outcomes), new Set(['joined']))
      const { group, members = [] } = (await store().readGroup(groupName)) ?? {}
      assert.equal(members.length, 1)
      assert.ok(times.includes(members[0]?.joinedAtMs ?? 0))
      assert.equal(group?.rebalanceAsked, 0)
    })

    test('cannot be who is not registered, and nothing is left of it', async () => {
      const groupName = await makeGroup()
      assert.equal(await store().joinGroup(memberOf(groupName, 9_999_999)), 'unknown_consumer')
      assert.deepEqual((await store().readGroup(groupName))?.members, [])
      assert.equal((await store().readGroupRecord(groupName))?.rebalanceAsked, 0)
    })
  })
}
