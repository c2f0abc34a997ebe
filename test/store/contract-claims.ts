import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { QueueOffset } from '../../core/model.ts'
import type { Commit, QueueClaim } from '../../core/store.ts'
import { type ContractScene, groupOf, offsetOf } from './contract.ts'

/** The part of the contract that is about claims, and about when progress was committed. */
export function claimContract({ store, unique }: ContractScene): void {
  /** A queue of a claimed group, at offset 10; its lease ends at 100 where it is not said. */
  const queue = async (fields: Partial<QueueOffset> = {}) => {
    const groupName = `group-${unique()}`
    const place = { groupName, queueOffsetId: 1 }
    await store().createGroup(groupOf(groupName, { mode: 'claimed' }))
    await store().addQueueOffset(offsetOf(groupName, 1, { offset: 10, ...fields }))
    const claim = (claimant: string, expectedOffsetVersion: number, times: Partial<QueueClaim> = {}) =>
      store().claimQueue({ ...place, claimant, expectedOffsetVersion, nowMs: 50, untilMs: 100, ...times })
    return {
      groupName,
      place,
      claim,
      read: async () => (await store().readGroup(groupName))?.offsets[0],
      renew: (offsetVersion: number, untilMs: number) => store().renewClaim({ ...place, offsetVersion, untilMs }),
      commit: (offsetVersion: number, offset: number, more: Partial<Commit> = {}) =>
        store().commitOffset({ ...place, offsetVersion, offset, release: false, nowMs: 7_000, ...more }),
      held: (more: Partial<QueueOffset> = {}) =>
        offsetOf(groupName, 1, {
          offset: 10,
          offsetVersion: 1,
          claim: { claimant: 'ann', untilMs: 100 },
          ...more,
        }),
    }
  }
  const conflict = { outcome: 'conflict' }
  const fenced = { outcome: 'fenced' }

  describe('claims', () => {
    test('takes a queue again in the name of who holds it, where it is asked to, and fences what it had before', async () => {
      const { claim, commit, held } = await queue()
      await claim('ann', 0)
      assert.deepEqual(await claim('ann', 1, { untilMs: 120 }), conflict)
      assert.deepEqual(await claim('bob', 1, { retakes: true }), conflict)
      assert.deepEqual(await claim('ann', 0, { retakes: true }), conflict)
      const retaken = held({ offsetVersion: 2, claim: { claimant: 'ann', untilMs: 120 } })
      assert.deepEqual(await claim('ann', 1, { retakes: true, untilMs: 120 }), { outcome: 'claimed', offset: retaken })
      assert.equal((await commit(1, 11)).outcome, 'fenced')
      assert.equal((await commit(2, 11)).outcome, 'advanced')
    })

    test('gives a free queue to who claims it, raises offsetVersion, and answers with the queue as it is then', async () => {
      const { groupName, claim, read, held } = await queue()
      assert.deepEqual(await claim('ann', 0), { outcome: 'claimed', offset: held() })
      assert.deepEqual(await read(), held())
      assert.deepEqual(await store().readGroupRecord(groupName), groupOf(groupName, { mode: 'claimed' }))
    })

    test('refuses a claim while the lease runs, of the claimant itself too', async () => {
      const { claim, read, held } = await queue()
      await claim('ann', 0)
      assert.deepEqual(await claim('bob', 1, { nowMs: 99, untilMs: 200 }), conflict)
      assert.deepEqual(await claim('ann', 1, { nowMs: 99, untilMs: 200 }), conflict)
      assert.deepEqual(await read(), held())
    })

    test('gives a queue to the next one from the moment that the lease is over', async () => {
      const { claim, read, held } = await queue()
      await claim('ann', 0)
      const bobs = held({ offsetVersion: 2, claim: { claimant: 'bob', untilMs: 200 } })
      assert.deepEqual(await claim('bob', 1, { nowMs: 100, untilMs: 200 }), { outcome: 'claimed', offset: bobs })
      assert.deepEqual(await read(), bobs)
      const anns = held({ offsetVersion: 3, claim: { claimant: 'ann', untilMs: 300 } })
      assert.deepEqual(await claim('ann', 2, { nowMs: 250, untilMs: 300 }), { outcome: 'claimed', offset: anns })
    })

    test('refuses a claim of a queue that is not as the claimant has read it', async () => {
      const { claim, read } = await queue({ offsetVersion: 4 })
      assert.deepEqual(await claim('ann', 3), conflict)
      assert.deepEqual(await claim('ann', 5), conflict)
      assert.deepEqual((await read())?.claim, undefined)
      assert.equal((await claim('ann', 4)).outcome, 'claimed')
      assert.deepEqual(
        await claim('bob', 4, { nowMs: 500, untilMs: 600 }),
        conflict,
        'the lease is over, and claimed since',
      )
    })

    test('refuses a claim of a queue that is stopped, and gives it once it is started again', async () => {
      const { claim, place, read } = await queue()
      await store().setStopped(place, true)
      assert.deepEqual(await claim('ann', 0), conflict)
      assert.equal((await read())?.offsetVersion, 0)
      await store().setStopped(place, false)
      assert.equal((await claim('ann', 0)).outcome, 'claimed')
    })

    test('refuses a claim of a queue that a consumer owns', async () => {
      const { claim, read, groupName } = await queue({ consumerId: 21 })
      assert.deepEqual(await claim('ann', 0), conflict)
      assert.deepEqual(await read(), offsetOf(groupName, 1, { offset: 10, consumerId: 21 }))
    })

    test('knows no claim of a queue that the group does not have', async () => {
      const { place, read } = await queue()
      const times = { nowMs: 50, untilMs: 100 }
      const other = { ...place, queueOffsetId: 77 }
      const claim = { ...other, claimant: 'ann', expectedOffsetVersion: 0, ...times }
      assert.deepEqual(await store().claimQueue(claim), conflict)
      assert.deepEqual(await store().renewClaim({ ...other, offsetVersion: 0, untilMs: 200 }), fenced)
      assert.deepEqual((await store().readGroup(place.groupName))?.offsets, [await read()])
    })

    test('lets exactly one of many concurrent claimants have a queue', async () => {
      const { claim, read } = await queue()
      const outcomes = await Promise.all(Array.from({ length: 20 }, (_, i) => claim(`claimant-${i}`, 0)))
      const claimed = outcomes.flatMap(answer => (answer.outcome === 'claimed' ? [answer.offset] : []))
      assert.equal(claimed.length, 1)
      assert.equal(outcomes.filter(answer => answer.outcome === 'conflict').length, 19)
      assert.deepEqual(await read(), claimed[0])
      assert.equal(claimed[0]?.offsetVersion, 1)
    })

    test('lets exactly one of many have a queue whose lease is over, and no more its former claimant', async () => {
      const { claim, renew, commit } = await queue()
      await claim('ann', 0)
      const takers = Array.from({ length: 10 }, (_, i) => claim(`claimant-${i}`, 1, { nowMs: 100, untilMs: 200 }))
      const outcomes = await Promise.all(takers)
      assert.equal(outcomes.filter(answer => answer.outcome === 'claimed').length, 1)
      assert.deepEqual(await renew(1, 300), fenced)
      assert.deepEqual(await commit(1, 20), { outcome: 'fenced', offset: 10, offsetVersion: 2 })
    })

    test('keeps a claim or gives it away, whichever of a renewal and a claim comes first', async () => {
      for (const renewsFirst of [true, false]) {
        const { claim, renew, read } = await queue()
        await claim('ann', 0)
        const take = () => claim('bob', 1, { nowMs: 100, untilMs: 200 })
        const keep = () => renew(1, 300)
        const [taken, kept] = renewsFirst
          ? (await Promise.all([keep(), take()])).toReversed()
          : await Promise.all([take(), keep()])
        const isTaken = taken?.outcome === 'claimed'
        assert.equal(kept?.outcome, isTaken ? 'fenced' : 'renewed')
        assert.deepEqual(
          (await read())?.claim,
          isTaken ? { claimant: 'bob', untilMs: 200 } : { claimant: 'ann', untilMs: 300 },
        )
      }
    })
  })

  describe('renewals', () => {
    test('prolongs a claim, and answers with the queue as it is then', async () => {
      const { claim, renew, read, held } = await queue()
      await claim('ann', 0)
      const prolonged = held({ claim: { claimant: 'ann', untilMs: 400 } })
      assert.deepEqual(await renew(1, 400), { outcome: 'renewed', offset: prolonged })
      assert.deepEqual(await read(), prolonged)
      assert.deepEqual(await claim('bob', 1, { nowMs: 399, untilMs: 500 }), conflict)
    })

    test('prolongs a claim whose lease was over, if nobody else has claimed the queue since', async () => {
      const { claim, renew } = await queue()
      await claim('ann', 0)
      assert.equal((await renew(1, 900)).outcome, 'renewed')
      assert.deepEqual(await claim('bob', 1, { nowMs: 500, untilMs: 600 }), conflict)
      assert.equal((await claim('bob', 1, { nowMs: 900, untilMs: 999 })).outcome, 'claimed')
      assert.deepEqual(await renew(1, 2_000), fenced)
      assert.equal((await renew(2, 2_000)).outcome, 'renewed')
    })

    test('prolongs no claim where there is none', async () => {
      const { renew, read, groupName } = await queue()
      assert.deepEqual(await renew(0, 400), fenced)
      assert.deepEqual(await read(), offsetOf(groupName, 1, { offset: 10 }))
    })

    test('says of a claimed queue that it was stopped meanwhile', async () => {
      const { claim, renew, place, held } = await queue()
      await claim('ann', 0)
      await store().setStopped(place, true)
      const stopped = held({ isStopped: true, claim: { claimant: 'ann', untilMs: 400 } })
      assert.deepEqual(await renew(1, 400), { outcome: 'renewed', offset: stopped })
    })
  })

  describe('a claim and its progress', () => {
    test('lets the claimant commit, also when its lease is over, and keeps the claim', async () => {
      const { claim, commit, read, held } = await queue()
      await claim('ann', 0)
      const advanced = { outcome: 'advanced', offset: 15, offsetVersion: 1, handedOver: false }
      assert.deepEqual(await commit(1, 15), advanced)
      assert.deepEqual(await read(), held({ offset: 15, committedAtMs: 7_000 }))
    })

    test('fences what was committed before the claim, and what the former claimant commits', async () => {
      const { claim, commit, read } = await queue()
      await claim('ann', 0)
      assert.deepEqual(await commit(0, 99), { outcome: 'fenced', offset: 10, offsetVersion: 1 })
      await claim('bob', 1, { nowMs: 100, untilMs: 200 })
      for (const release of [false, true]) {
        assert.deepEqual(await commit(1, 99, { release }), { outcome: 'fenced', offset: 10, offsetVersion: 2 })
      }
      const bobs = await read()
      assert.deepEqual([bobs?.offset, bobs?.claim], [10, { claimant: 'bob', untilMs: 200 }])
    })

    test('ends a claim with the final commit of the claimant, so that the next one need not wait', async () => {
      for (const [offset, outcome] of [
        [15, 'advanced'],
        [10, 'unchanged'],
        [3, 'unchanged'],
      ] as const) {
        const { groupName, claim, commit, renew, read } = await queue()
        await claim('ann', 0)
        const at = Math.max(10, offset)
        const released = { outcome, offset: at, offsetVersion: 2, handedOver: false }
        assert.deepEqual(await commit(1, offset, { release: true }), released)
        const committed = offset > 10 && { committedAtMs: 7_000 }
        assert.deepEqual(await read(), offsetOf(groupName, 1, { offset: at, offsetVersion: 2, ...committed }))
        assert.deepEqual(await renew(1, 400), fenced)
        assert.deepEqual(await renew(2, 400), fenced)
        assert.equal((await commit(1, 99)).outcome, 'fenced')
        assert.equal((await claim('bob', 2)).outcome, 'claimed')
        assert.deepEqual(await store().readGroupRecord(groupName), groupOf(groupName, { mode: 'claimed' }))
      }
    })

    test('ends a claim by a final commit after the lease, if nobody else has claimed the queue since', async () => {
      const { claim, commit, read } = await queue()
      await claim('ann', 0, { nowMs: 1, untilMs: 2 })
      assert.equal((await commit(1, 12, { release: true, nowMs: 9_000 })).outcome, 'advanced')
      assert.equal((await read())?.claim, undefined)
    })

    test('ends a claim when the offset is reset, and fences the claimant', async () => {
      const { groupName, claim, commit, renew, place, read } = await queue()
      await claim('ann', 0)
      await commit(1, 12)
      assert.equal(await store().resetOffset(place, 3), 'reset')
      const reset = offsetOf(groupName, 1, { offset: 3, offsetVersion: 2, committedAtMs: 7_000 })
      assert.deepEqual(await read(), reset)
      assert.equal((await commit(1, 99)).outcome, 'fenced')
      assert.deepEqual(await renew(1, 400), fenced)
      assert.deepEqual(await renew(2, 400), fenced)
      assert.deepEqual(await claim('bob', 1), conflict)
      assert.equal((await claim('bob', 2)).outcome, 'claimed')
    })

    test('ends a claim with a hand-over', async () => {
      const leaving = { nextConsumerId: 22, leavingSinceMs: 3_000, claim: { claimant: 'ann', untilMs: 100 } }
      const { groupName, commit, read } = await queue(leaving)
      const handed = { outcome: 'advanced', offset: 15, offsetVersion: 1, handedOver: true }
      assert.deepEqual(await commit(0, 15, { release: true }), handed)
      const next = { offset: 15, offsetVersion: 1, consumerId: 22, committedAtMs: 7_000 }
      assert.deepEqual(await read(), offsetOf(groupName, 1, next))
    })

    test('leaves a claim alone when the queue is stopped and started again', async () => {
      const { claim, place, read, held } = await queue()
      await claim('ann', 0)
      await store().setStopped(place, true)
      assert.deepEqual(await read(), held({ isStopped: true }))
      await store().setStopped(place, false)
      assert.deepEqual(await read(), held())
    })

    test('commits what the claimant has done or gives the queue to the next one, whichever comes first', async () => {
      const { claim, commit, read } = await queue()
      await claim('ann', 0)
      const [committed, taken] = await Promise.all([commit(1, 15), claim('bob', 1, { nowMs: 100, untilMs: 200 })])
      assert.equal(taken.outcome, 'claimed', 'a commit changes nothing that a claimant has read')
      assert.equal((await read())?.offset, committed.outcome === 'advanced' ? 15 : 10)
      assert.equal((await read())?.offsetVersion, 2)
    })
  })

  describe('the time of progress', () => {
    test('is that of the last commit that advanced', async () => {
      const { commit, read } = await queue()
      assert.equal((await read())?.committedAtMs, undefined)
      await commit(0, 12, { nowMs: 7_000 })
      assert.equal((await read())?.committedAtMs, 7_000)
      await commit(0, 12, { nowMs: 8_000 })
      await commit(0, 11, { nowMs: 8_000 })
      await commit(5, 99, { nowMs: 8_000 })
      await commit(0, 12, { nowMs: 8_000, release: true })
      assert.equal((await read())?.committedAtMs, 7_000)
      await commit(1, 14, { nowMs: 9_000, release: true })
      assert.equal((await read())?.committedAtMs, 9_000)
    })
  })
}
