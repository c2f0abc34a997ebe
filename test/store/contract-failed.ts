import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { FailedMessage, FirstPlace } from '../../core/failed/records.ts'
import type { ContractScene } from './contract.ts'

const everything = { from: { atMs: 0, queueId: 0, offset: 0 }, to: { atMs: 9e15, queueId: 0, offset: 0 } }

export const failedOf = (topicName: string, fields: Partial<FailedMessage> = {}): FailedMessage => ({
  groupName: 'billing',
  topicName,
  first: { atMs: 1_000_000, queueId: 12, offset: 1 },
  state: 'retrying',
  resends: 0,
  retryCount: 1,
  attempts: 1,
  place: { queueId: 12, offset: 1 },
  lastFailedAtMs: 1_000_000,
  endsAtMs: 90_000_000,
  ...fields,
})

/** Of everything that a record may have, something. */
export const fullFailed = (topicName: string): FailedMessage =>
  failedOf(topicName, {
    origin: { queueId: 7, offset: 123_456_789_012 },
    state: 'dropped',
    resends: 2,
    retryCount: 4,
    attempts: 12,
    bizId: 'order ü \u{1f600}',
    errorKind: 'threw',
    error: 'it\nbroke\u0000',
    resentAtMs: 2_000_000,
    settledAtMs: 3_000_000,
    dropReason: 'nobody needs it',
    claimedUntilMs: 4_000_000,
  })

/** The part of the contract that is about failed messages. */
export function failedContract({ store, unique }: ContractScene): void {
  const name = () => `failing-${unique()}`
  const list = (topicName: string, fields: object = {}) =>
    store().listFailed({
      groupName: 'billing',
      topicName,
      ...everything,
      direction: 'forward',
      limit: 100,
      ...fields,
    })
  const only = async (topicName: string) => {
    const [record, ...others] = await list(topicName)
    assert.deepEqual(others, [])
    return record
  }

  describe('failed messages', () => {
    test('are given back as they were recorded, with all that they may have', async () => {
      for (const record of [failedOf(name()), fullFailed(name())]) {
        assert.equal(await store().recordFailed(record), 'recorded')
        assert.deepEqual(await store().readFailed([record]), [record])
        assert.deepEqual(await only(record.topicName), record)
      }
    })

    test('are those of one subscription, and none of another one', async () => {
      const record = failedOf(name())
      await store().recordFailed(record)
      assert.deepEqual(await store().readFailed([{ ...record, groupName: 'audit' }]), [])
      assert.deepEqual(await list(record.topicName, { groupName: 'audit' }), [])
    })

    const first = failedOf('', { state: 'exhausted', retryCount: 3 })
    const elsewhere = { place: { queueId: 13, offset: 9 } }
    const cases: [string, Partial<FailedMessage>, Partial<FailedMessage>, 'recorded' | 'superseded'][] = [
      ['one more failure', {}, { retryCount: 4 }, 'recorded'],
      ['a failure of before', {}, { retryCount: 2 }, 'superseded'],
      ['the same failure again', {}, {}, 'recorded'],
      ['another copy that has failed as often', {}, elsewhere, 'superseded'],
      ['the same failure by other settings', {}, { state: 'retrying' }, 'superseded'],
      ['a success of what has failed since', {}, { state: 'succeeded', retryCount: 2 }, 'superseded'],
      ['its success', {}, { state: 'succeeded' }, 'recorded'],
      ['the success of another copy of it', {}, { state: 'succeeded', ...elsewhere }, 'recorded'],
      ['a success that comes before its failure', {}, { state: 'succeeded', retryCount: 5 }, 'recorded'],
      ['a failure that comes after its success', { state: 'succeeded' }, {}, 'superseded'],
      ['a success again', { state: 'succeeded' }, { state: 'succeeded', settledAtMs: 7 }, 'recorded'],
      ['a failure behind a success', { state: 'succeeded' }, { retryCount: 4 }, 'recorded'],
      ['a resend', {}, { state: 'retrying', resends: 1, retryCount: 0 }, 'recorded'],
      ['a failure of before the resend', { resends: 1, retryCount: 0 }, { retryCount: 9 }, 'superseded'],
      ['a success of what was dropped', { state: 'dropped' }, { state: 'succeeded' }, 'recorded'],
    ]
    for (const [what, before, after, outcome] of cases) {
      test(`are ${outcome}: ${what}`, async () => {
        const topicName = name()
        const current = { ...first, topicName, ...before }
        const next = { ...first, topicName, ...after }
        await store().recordFailed(current)
        assert.equal(await store().recordFailed(next), outcome)
        const isSame = next.state === current.state && next.retryCount === current.retryCount
        assert.deepEqual(await only(topicName), outcome === 'superseded' || isSame ? current : next)
      })
    }

    test('keep how they failed last when they succeed or are resent, and nothing of an end that was none', async () => {
      for (const next of [
        { state: 'succeeded' as const, settledAtMs: 5 },
        { resends: 3, retryCount: 0 },
      ]) {
        const former = fullFailed(name())
        const { dropReason: _reason, settledAtMs: _at, claimedUntilMs: _until, ...kept } = former
        const { errorKind: _kind, error: _error, ...told } = { ...kept, state: 'retrying' as const, ...next }
        await store().recordFailed(former)
        await store().recordFailed(told)
        assert.deepEqual(await only(former.topicName), { ...kept, state: 'retrying', ...next })
      }
    })

    test('forget how they failed before when they fail again, and nobody says how', async () => {
      const topicName = name()
      await store().recordFailed(failedOf(topicName, { errorKind: 'threw', error: 'no' }))
      const again = failedOf(topicName, { retryCount: 2, attempts: 2 })
      await store().recordFailed(again)
      assert.deepEqual(await only(topicName), again)
    })

    test('are replaced while they are as they were read, and by one of many at once', async () => {
      const topicName = name()
      const read = failedOf(topicName, { state: 'exhausted' })
      await store().recordFailed(read)
      const outcomes = await Promise.all(
        [1, 2, 3, 4].map(n => store().replaceFailed(read, { ...read, claimedUntilMs: 1_000 + n }, 500)),
      )
      assert.deepEqual(outcomes.toSorted(), ['refused', 'refused', 'refused', 'replaced'])
    })

    const exhausted = failedOf('', { state: 'exhausted', retryCount: 3, claimedUntilMs: 1_000 })
    const replacements: [string, Partial<FailedMessage>, number, 'replaced' | 'refused'][] = [
      ['that was claimed until now', {}, 1_000, 'replaced'],
      ['that is claimed a moment longer', {}, 999, 'refused'],
      ['that has failed since', { retryCount: 2 }, 2_000, 'refused'],
      ['that was resent since', { resends: -1 }, 2_000, 'refused'],
      ['whose state has changed since', { state: 'retrying' }, 2_000, 'refused'],
    ]
    for (const [what, differs, nowMs, outcome] of replacements) {
      test(`are ${outcome}: one ${what}`, async () => {
        const topicName = name()
        const current = { ...exhausted, topicName }
        await store().recordFailed(current)
        const read = { ...current, ...differs }
        const next: FailedMessage = { ...current, state: 'dropped', dropReason: 'why' }
        assert.equal(await store().replaceFailed(read, next, nowMs), outcome)
        assert.deepEqual(await only(topicName), outcome === 'replaced' ? next : current)
      })
    }

    test('that are not there are not replaced', async () => {
      const record = failedOf(name())
      assert.equal(await store().replaceFailed(record, record, 0), 'refused')
      assert.equal(await only(record.topicName), undefined)
    })

    test('are listed in the order of their first places or against it, from one on, up to another, and so many', async () => {
      const topicName = name()
      const firsts: FirstPlace[] = [
        { atMs: 999, queueId: 13, offset: 40 },
        { atMs: 1_000, queueId: 12, offset: 9 },
        { atMs: 1_000, queueId: 12, offset: 10 },
        { atMs: 1_000, queueId: 13, offset: 1 },
        { atMs: 20_000, queueId: 1, offset: 1 },
      ]
      for (const first of firsts.toReversed()) await store().recordFailed(failedOf(topicName, { first }))
      const places = async (fields: object) =>
        (await list(topicName, fields)).map(({ first }) =>
          firsts.indexOf(firsts.find(each => JSON.stringify(each) === JSON.stringify(first)) as FirstPlace),
        )
      assert.deepEqual(await places({}), [0, 1, 2, 3, 4])
      assert.deepEqual(await places({ direction: 'backward' }), [4, 3, 2, 1, 0])
      assert.deepEqual(await places({ limit: 2 }), [0, 1])
      assert.deepEqual(await places({ direction: 'backward', limit: 2 }), [4, 3])
      assert.deepEqual(await places({ from: firsts[1], to: firsts[3] }), [1, 2, 3])
      assert.deepEqual(await places({ from: { atMs: 1_000, queueId: 12, offset: 10 }, limit: 1 }), [2])
      assert.deepEqual(await places({ from: { atMs: 20_001, queueId: 0, offset: 0 } }), [])
    })

    test('are found by their names, a hundred and more at once, and those left out that are not there', async () => {
      const topicName = name()
      const records = Array.from({ length: 130 }, (_, i) => {
        return failedOf(topicName, { first: { atMs: 1_000, queueId: 12, offset: i + 1 } })
      })
      await Promise.all(records.slice(0, 120).map(record => store().recordFailed(record)))
      const found = await store().readFailed(records)
      assert.deepEqual(
        found.map(({ first }) => first.offset).toSorted((a, b) => a - b),
        records.slice(0, 120).map(({ first }) => first.offset),
      )
      assert.deepEqual(await store().readFailed([]), [])
    })
  })
}
