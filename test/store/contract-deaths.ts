import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { QueueOffset } from '../../core/model.ts'
import type { Commit, QueueMove } from '../../core/store.ts'
import { type ContractScene, consumerOf, groupOf, memberOf, offsetOf } from './contract.ts'

/** The part of the contract that is about owners that were lost: who is, that it is counted, and what ends the count. */
export function deathContract({ store, unique }: ContractScene): void {
  /** A queue at offset 10, owned by 21 under version 1 where nothing else is said. */
  const queue = async (fields: Partial<QueueOffset> = {}) => {
    const groupName = `group-${unique()}`
    const place = { groupName, queueOffsetId: 1 }
    await store().createGroup(groupOf(groupName))
    const owned = { offset: 10, offsetVersion: 1, consumerId: 21, ...fields }
    await store().addQueueOffset(offsetOf(groupName, 1, owned))
    const read = async () => (await store().readGroup(groupName))?.offsets[0]
    return {
      place,
      read,
      care: async () => {
        const { deaths, trial } = (await read()) ?? {}
        return { ...(deaths && { deaths }), ...(trial && { trial }) }
      },
      /** Takes the queue from whoever has it. */
      take: async (more: Partial<QueueMove> = {}) => {
        const now = await read()
        return store().moveQueue({
          ...place,
          expectedOffsetVersion: now?.offsetVersion ?? 0,
          expectedConsumerId: now?.consumerId ?? 0,
          expectedNextConsumerId: now?.nextConsumerId,
          consumerId: (now?.consumerId ?? 0) + 1,
          ownerIsLost: true,
          rbVersion: 1,
          ...more,
        })
      },
      claim: (expectedOffsetVersion: number, ownerIsLost: boolean) =>
        store().claimQueue({
          ...place,
          claimant: 'bob',
          expectedOffsetVersion,
          ownerIsLost,
          nowMs: 100,
          untilMs: 200,
        }),
      commit: (offsetVersion: number, offset: number, more: Partial<Commit> = {}) =>
        store().commitOffset({ ...place, offsetVersion, offset, release: false, nowMs: 7_000, ...more }),
    }
  }
  const death = (count: number, offsetVersion: number) => ({ deaths: { count, offsetVersion } })
  const trial = (offset: number, offsetVersion: number, failures = 0) => ({
    trial: { offset, offsetVersion, failures },
  })

  describe('deaths of owners', () => {
    test('are counted in the write that takes the queue, each with the version that the last one had', async () => {
      const { care, take, read } = await queue()
      assert.equal(await take(), 'moved')
      assert.deepEqual(await care(), death(1, 1))
      assert.equal(await take({ consumerId: 0 }), 'moved')
      assert.deepEqual(await care(), death(2, 2))
      const { offset, consumerId, offsetVersion } = (await read()) ?? {}
      assert.deepEqual({ offset, consumerId, offsetVersion }, { offset: 10, consumerId: 0, offsetVersion: 3 })
    })

    test('are not counted where the move is refused, nor where nobody was lost', async () => {
      const { care, take } = await queue()
      assert.equal(await take({ expectedOffsetVersion: 0 }), 'conflict')
      assert.equal(await take({ ownerIsLost: false }), 'moved')
      assert.deepEqual(await care(), {})
    })

    test('are counted for claimants who let their lease end', async () => {
      const { claim, care } = await queue({ consumerId: 0, claim: { claimant: 'ann', untilMs: 50 } })
      const claimed = await claim(1, true)
      assert.deepEqual(claimed.outcome === 'claimed' && claimed.offset.deaths, { count: 1, offsetVersion: 1 })
      assert.equal((await claim(1, true)).outcome, 'conflict')
      assert.deepEqual(await care(), death(1, 1))
    })

    test('are not counted for a queue that was free', async () => {
      const { claim, care } = await queue({ consumerId: 0 })
      assert.equal((await claim(1, false)).outcome, 'claimed')
      assert.deepEqual(await care(), {})
    })

    test('stay counted while the queue changes hands in order, and over a commit that does not get on', async () => {
      const { care, take, commit } = await queue(death(2, 0))
      await take({ ownerIsLost: false, consumerId: 21, leaving: { nextConsumerId: 22, sinceMs: 3_000 } })
      assert.equal((await commit(1, 10)).outcome, 'unchanged')
      assert.equal((await commit(1, 9, { release: true })).outcome, 'unchanged')
      await take({ ownerIsLost: false, consumerId: 0 })
      assert.deepEqual(await care(), death(2, 0))
    })

    test('are over with the first commit that gets on, whatever it is', async () => {
      for (const more of [{}, { release: true }, { trialOffset: 0 }]) {
        const { care, commit } = await queue({ ...death(2, 0), ...trial(11, 0) })
        assert.equal((await commit(1, 11, more)).outcome, 'advanced')
        assert.deepEqual(await care(), {}, JSON.stringify(more))
      }
      const { care, commit } = await queue({
        ...death(2, 0),
        ...trial(11, 0),
        nextConsumerId: 22,
        leavingSinceMs: 3_000,
      })
      assert.equal((await commit(1, 11, { release: true })).outcome, 'advanced')
      assert.deepEqual(await care(), {})
    })

    test('are over with a reset, wherever to', async () => {
      const { care, place } = await queue({ ...death(2, 0), ...trial(11, 0) })
      await store().resetOffset(place, 10)
      assert.deepEqual(await care(), {})
    })
  })

  describe('a message on trial', () => {
    test('is noted with the version of its owner, also where the offset stays, and gives way to the next', async () => {
      const { care, commit, read } = await queue(death(1, 0))
      assert.deepEqual(await commit(1, 10, { trialOffset: 11 }), {
        outcome: 'unchanged',
        offset: 10,
        offsetVersion: 1,
        handedOver: false,
      })
      assert.deepEqual(await care(), { ...death(1, 0), ...trial(11, 1) })
      assert.equal((await read())?.committedAtMs, undefined, 'nothing was done yet')
      assert.equal((await commit(1, 10, { trialOffset: 11, trialFailures: 2 })).outcome, 'unchanged')
      assert.deepEqual(await care(), { ...death(1, 0), ...trial(11, 1, 2) })
      assert.equal((await commit(1, 11, { trialOffset: 12, trialFailures: 1 })).outcome, 'advanced')
      assert.deepEqual(await care(), trial(12, 1, 1))
      assert.equal((await commit(1, 11, { trialOffset: 14 })).outcome, 'unchanged')
      assert.deepEqual(await care(), trial(14, 1))
    })

    test('is over when its owner says so, gets on, or gives the queue up', async () => {
      for (const [offset, more] of [
        [10, { trialOffset: 0 }],
        [11, {}],
        [10, { release: true }],
        [10, { release: true, trialOffset: 12 }],
        [11, { release: true, trialOffset: 12 }],
      ] as const) {
        const { care, commit } = await queue(trial(11, 1))
        await commit(1, offset, more)
        assert.deepEqual(await care(), {}, `${offset} ${JSON.stringify(more)}`)
      }
    })

    test('is not over by a commit that says nothing of it and does not get on', async () => {
      const { care, commit } = await queue(trial(11, 1))
      assert.equal((await commit(1, 10)).outcome, 'unchanged')
      assert.deepEqual(await care(), trial(11, 1))
    })

    test('stays when its owner was lost, and when the next one gives the queue up without having got on', async () => {
      for (const leaving of [{}, { nextConsumerId: 30, leavingSinceMs: 3_000 }]) {
        const { care, commit } = await queue({ offsetVersion: 2, ...death(1, 1), ...trial(11, 1), ...leaving })
        assert.equal((await commit(2, 10, { release: true })).outcome, 'unchanged')
        assert.deepEqual(await care(), { ...death(1, 1), ...trial(11, 1) })
      }
    })

    test('cannot be set by who does not own the queue any more', async () => {
      const { care, commit, place } = await queue({ offsetVersion: 2 })
      assert.equal((await commit(1, 10, { trialOffset: 11 })).outcome, 'fenced')
      const unknown = { ...place, queueOffsetId: 77, offsetVersion: 1, offset: 10, release: false, nowMs: 1 }
      assert.deepEqual(await store().commitOffset({ ...unknown, trialOffset: 11 }), { outcome: 'unknown_queue' })
      assert.deepEqual(await care(), {})
    })
  })

  describe('members that were lost', () => {
    const member = async () => {
      const consumer = consumerOf(await store().takeIds('consumer', 1), `consumer-${unique()}`)
      await store().registerConsumer(consumer)
      const groupName = `group-${unique()}`
      await store().createGroup(groupOf(groupName))
      const joined = memberOf(groupName, consumer.consumerId, { instanceId: 'pod-0', predecessors: [] })
      await store().joinGroup(joined)
      const { consumerId } = consumer
      return {
        joined,
        consumerId,
        lose: () => store().loseMember(groupName, consumerId),
        leave: () => store().leaveGroup(groupName, consumerId),
        stop: () => store().stopMember(groupName, consumerId),
        read: async () => {
          const { members, lost } = (await store().readGroup(groupName)) ?? {}
          return { members, lost }
        },
      }
    }

    test('are members no more, and remembered until they are forgotten', async () => {
      const { consumerId, lose, leave, stop, read } = await member()
      assert.equal(await lose(), 'lost')
      assert.deepEqual(await read(), { members: [], lost: [consumerId] })
      assert.equal(await lose(), 'not_a_member')
      assert.equal(await stop(), 'not_a_member')
      assert.equal(await leave(), 'left')
      assert.deepEqual(await read(), { members: [], lost: [] })
      assert.equal(await lose(), 'not_a_member')
      assert.equal(await stop(), 'not_a_member')
      assert.deepEqual(await read(), { members: [], lost: [] })
    })

    test('are none that had stopped in order: they leave', async () => {
      const { joined, stop, lose, read } = await member()
      assert.equal(await stop(), 'noted')
      assert.equal(await stop(), 'noted')
      assert.deepEqual(await read(), { members: [{ ...joined, hasStopped: true }], lost: [] })
      assert.equal(await lose(), 'left')
      assert.deepEqual(await read(), { members: [], lost: [] })
    })

    test('are those that had stopped and have joined again', async () => {
      const { joined, consumerId, stop, lose, read } = await member()
      await stop()
      await store().joinGroup(joined)
      assert.deepEqual(await read(), { members: [joined], lost: [] })
      assert.equal(await lose(), 'lost')
      assert.deepEqual((await read()).lost, [consumerId])
    })
  })
}
