import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Delivery, freshState, type Target, type TargetOwner } from '../../core/notify/target.ts'
import { type ContractScene, groupOf, queueOf, subscriptionOf, topicOf } from './contract.ts'

/** A target with all that it may have. */
export const targetOf = (owner: TargetOwner, name: string, more: Partial<Target> = {}): Target => ({
  owner,
  name,
  kind: 'webhook',
  delivers: 'hints',
  url: 'https://example.com/hook?a=ü',
  minGapMs: 100,
  secrets: [{ secretId: 's', value: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', createdAtMs: 1 }],
  createdAtMs: 1_700_000_000_000,
  revision: 1,
  state: {
    ...freshState,
    pending: [{ queueId: 7, dueAtMs: 1_700_000_000_001, lastDueAtMs: 1_700_000_000_002 }],
    delivery: { deliveryId: 'msg_1', queueIds: [7, 8], wakeAtMs: 3 },
  },
  ...more,
})

/** The part of the contract that is about targets and what was sent to them. */
export function targetsContract({ store, unique }: ContractScene): void {
  describe('targets', () => {
    const newOwner = (): TargetOwner => ({ groupName: `targets-${unique()}` })

    test('are there as they were made, by name, and of their owner alone', async () => {
      const [owner, other] = [newOwner(), newOwner()]
      const all = ['c', 'a', 'b'].map(name => targetOf(owner, name))
      for (const target of all) assert.equal(await store().createTarget(target), 'created')
      assert.deepEqual(await store().readTargets(owner), [all[1], all[2], all[0]])
      assert.deepEqual(await store().readTargets(other), [])
    })

    test('are not made twice', async () => {
      const target = targetOf(newOwner(), 'hook')
      assert.equal(await store().createTarget(target), 'created')
      assert.equal(await store().createTarget({ ...target, kind: 'lambda' }), 'exists')
      assert.deepEqual(await store().readTargets(target.owner), [target])
    })

    test('are replaced by whoever has seen what is there', async () => {
      const target = targetOf(newOwner(), 'hook')
      await store().createTarget(target)
      const next = { ...target, url: 'https://example.com/other', revision: 2, state: freshState }
      assert.deepEqual(await store().replaceTarget(next), { outcome: 'replaced' })
      assert.deepEqual(await store().readTargets(target.owner), [next])
      const late = { ...target, minGapMs: 5, revision: 2 }
      assert.deepEqual(await store().replaceTarget(late), { outcome: 'conflict', current: next })
      assert.deepEqual(await store().readTargets(target.owner), [next])
    })

    test('are not brought back by a replacement', async () => {
      const target = targetOf(newOwner(), 'hook')
      assert.deepEqual(await store().replaceTarget({ ...target, revision: 2 }), {
        outcome: 'conflict',
        current: undefined,
      })
      await store().createTarget(target)
      assert.equal(await store().removeTarget(target), 'removed')
      assert.deepEqual(await store().replaceTarget({ ...target, revision: 2 }), {
        outcome: 'conflict',
        current: undefined,
      })
      assert.equal(await store().removeTarget(target), 'unknown_target')
      assert.deepEqual(await store().readTargets(target.owner), [])
    })

    test('are replaced once where many are at it', async () => {
      const target = targetOf(newOwner(), 'hook')
      await store().createTarget(target)
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, minGapMs) => store().replaceTarget({ ...target, minGapMs, revision: 2 })),
      )
      assert.equal(answers.filter(({ outcome }) => outcome === 'replaced').length, 1)
    })

    test('list the groups that have some, each once; alarms are no group', async () => {
      const owner = newOwner()
      const { groupName } = owner as { groupName: string }
      const isListed = async () => (await store().listGroupsWithTargets()).filter(name => name === groupName).length
      for (const name of ['a', 'b']) await store().createTarget(targetOf(owner, name))
      assert.equal(await isListed(), 1)
      await store().removeTarget({ owner, name: 'a' })
      assert.equal(await isListed(), 1)
      await store().removeTarget({ owner, name: 'b' })
      assert.equal(await isListed(), 0)

      const ofAlarms = targetOf('alarms', `alarm-${unique()}`)
      assert.equal(await store().createTarget(ofAlarms), 'created')
      assert.ok((await store().readTargets('alarms')).some(({ name }) => name === ofAlarms.name))
      const listed = await store().listGroupsWithTargets()
      assert.ok(!listed.some(name => name.toLowerCase().includes('alarm')), String(listed))
      assert.equal(await store().removeTarget(ofAlarms), 'removed')
    })

    test('are noted at a topic for its groups alone, and the note goes with the subscription', async () => {
      const n = unique()
      const [topicName, groupName] = [`topic-${n}`, `group-${n}`]
      const notifies = async () => (await store().readTopic(topicName))?.notifies
      await store().createTopic(topicOf(topicName), [queueOf(topicName, n)])
      await store().createGroup(groupOf(groupName))
      assert.equal(await store().setNotifies(topicName, groupName, true), 'unknown_subscriber')
      await store().createSubscription(subscriptionOf(groupName, topicName))
      assert.deepEqual(await notifies(), [])
      for (const [noted, names] of [
        [true, [groupName]],
        [true, [groupName]],
        [false, []],
        [false, []],
        [true, [groupName]],
      ] as const) {
        assert.equal(await store().setNotifies(topicName, groupName, noted), 'set')
        assert.deepEqual(await notifies(), names)
        assert.deepEqual((await store().readTopic(topicName))?.groupNames, [groupName])
      }
      await store().removeSubscription(groupName, topicName)
      await store().createSubscription(subscriptionOf(groupName, topicName))
      assert.deepEqual(await notifies(), [])
    })

    test('keep what was sent to them, the newest first, also when they are gone', async () => {
      const target = targetOf(newOwner(), 'hook')
      const deliveryAt = (atMs: number, more: Partial<Delivery> = {}): Delivery => ({
        deliveryId: 'msg_1',
        atMs,
        durationMs: 5,
        outcome: 'failed',
        what: 'hint',
        queueIds: [7],
        ...more,
      })
      const nowMs = 1_700_000_000_000
      const tries = [1, 2, 3].map(ms => deliveryAt(nowMs + ms))
      const full = deliveryAt(nowMs + 3, {
        deliveryId: 'msg_2',
        status: 500,
        error: 'the target answered 500',
        answer: '<b>\u0000ü',
      })
      await store().createTarget(target)
      for (const each of [...tries, full, full]) await store().addDelivery(target, each)
      const [first, second, third] = tries
      assert.deepEqual(await store().listDeliveries(target, { limit: 10 }), [full, third, second, first])
      assert.deepEqual(await store().listDeliveries(target, { limit: 2 }), [full, third])
      assert.deepEqual(await store().listDeliveries(target, { limit: 10, beforeMs: nowMs + 3 }), [second, first])
      assert.deepEqual(await store().listDeliveries({ ...target, name: 'hoo' }, { limit: 10 }), [])
      await store().removeTarget(target)
      assert.equal((await store().listDeliveries(target, { limit: 10 })).length, 4)
    })
  })
}
