import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { endStep, hintStep, overdueMs, wakeStep } from '../../core/notify/steps.ts'
import { freshState, type PendingQueue, type Target, type TargetState } from '../../core/notify/target.ts'
import { play, type Story, type Weather } from './model.ts'

const weathers: Record<string, Weather> = {
  'all is well': { failing: 0, dying: 0, repeated: 0, minGapMs: 100, delaySeconds: 0 },
  'things come twice': { failing: 0, dying: 0, repeated: 0.5, minGapMs: 100, delaySeconds: 0 },
  'the target fails half of the time': { failing: 0.5, dying: 0, repeated: 0.1, minGapMs: 100, delaySeconds: 0 },
  'containers die': { failing: 0.2, dying: 0.3, repeated: 0.1, minGapMs: 100, delaySeconds: 0 },
  'hints have a long gap': { failing: 0.1, dying: 0.1, repeated: 0.1, minGapMs: 20_000, delaySeconds: 0 },
  'hints have no gap': { failing: 0.1, dying: 0.1, repeated: 0.1, minGapMs: 0, delaySeconds: 0 },
  'messages are delayed': { failing: 0.1, dying: 0.1, repeated: 0.1, minGapMs: 100, delaySeconds: 60 },
  'messages are delayed by hours': { failing: 0, dying: 0.1, repeated: 0.1, minGapMs: 100, delaySeconds: 7_200 },
}
const seeds = Array.from({ length: 60 }, (_, seed) => seed)

describe('Of whatever is appended a target is told', () => {
  for (const [name, weather] of Object.entries(weathers)) {
    test(`when ${name}`, () => {
      for (const seed of seeds) {
        const story = play(seed, weather)
        assert.deepEqual(untold(story), [], `seed ${seed}`)
        const { pending, delivery, wakeAtMs } = story.target.state
        assert.deepEqual(
          { pending, delivery, wakeAtMs },
          { pending: [], delivery: undefined, wakeAtMs: undefined },
          `seed ${seed}`,
        )
      }
    })
  }

  test('by hints of which one follows another after the gap at least, where none is repeated', () => {
    for (const seed of seeds) {
      const { sent } = play(seed, { failing: 0, dying: 0, repeated: 0, minGapMs: 1_000, delaySeconds: 0 })
      const times = sent.map(({ atMs }) => atMs).toSorted((a, b) => a - b)
      // From the decision to the sending a container takes up to 20 ms.
      for (const [i, atMs] of times.entries()) if (i > 0) assert.ok(atMs - (times[i - 1] ?? 0) >= 980, `seed ${seed}`)
      assert.ok(sent.length <= 40, `${sent.length} hints for 60 messages`)
    }
  })

  test('under one id until it succeeds, where it has failed', () => {
    for (const seed of seeds) {
      const { sent } = play(seed, { failing: 0.7, dying: 0, repeated: 0, minGapMs: 100, delaySeconds: 0 })
      const tries = Map.groupBy(sent, ({ deliveryId }) => deliveryId)
      for (const [id, all] of tries) {
        assert.equal(new Set(all.map(({ queueIds }) => String(queueIds))).size, 1, `seed ${seed}: ${id} says one thing`)
      }
      assert.ok(
        [...tries.values()].some(({ length }) => length > 1),
        `seed ${seed}: some are repeated`,
      )
    }
  })
})

/** Messages that no good hint has told of, which was begun when they were due. */
function untold({ appended, sent }: Story) {
  return appended.filter(
    ({ queueId, dueAtMs }) =>
      !sent.some(hint => hint.isGood && hint.atMs >= dueAtMs && hint.queueIds.includes(queueId)),
  )
}

describe('A target', () => {
  const nowMs = 1_700_000_000_000
  const target = (state: Partial<TargetState> = {}): Target => ({
    owner: { groupName: 'g' },
    name: 't',
    kind: 'webhook',
    delivers: 'hints',
    minGapMs: 100,
    secrets: [],
    createdAtMs: 0,
    revision: 1,
    state: { ...freshState, ...state },
  })
  const now = (queueId: number): PendingQueue => ({ queueId, dueAtMs: nowMs, lastDueAtMs: nowMs })
  const newId = () => 'd1'
  const failing = (state: Partial<TargetState>, more: object = {}) =>
    endStep(target(state), { deliveryId: 'd1', queueIds: [1] }, { outcome: 'failed', ...more }, nowMs)

  test('that fails is tried after 5 s, and down to every five minutes', () => {
    const pauses = [0, 1, 2, 3, 4, 5, 6, 7, 50].map(failures => {
      const { next } = failing({ failures, failingSinceMs: nowMs - 1 })
      return ((next?.openUntilMs ?? 0) - nowMs) / 1000
    })
    assert.deepEqual(pauses, [5, 10, 20, 40, 80, 160, 300, 300, 300])
  })

  test('may ask for a longer pause, up to a quarter of an hour', () => {
    assert.equal(failing({}, { retryAfterMs: 60_000 }).next?.openUntilMs, nowMs + 60_000)
    assert.equal(failing({}, { retryAfterMs: 1 }).next?.openUntilMs, nowMs + 5_000)
    assert.equal(failing({}, { retryAfterMs: 1e12 }).next?.openUntilMs, nowMs + 900_000)
  })

  test('is disabled when it has failed for a day, or says that it is gone, and is sent nothing then', () => {
    assert.equal(failing({ failures: 9, failingSinceMs: nowMs - 86_399_999 }).next?.isDisabled, false)
    const { next } = failing({ failures: 9, failingSinceMs: nowMs - 86_400_000, pending: [now(2)] })
    assert.deepEqual(next, {
      pending: [],
      failures: 9,
      failingSinceMs: nowMs - 86_400_000,
      isDisabled: true,
      disabledBy: 'failures',
      disabledAtMs: nowMs,
    })
    assert.equal(failing({}, { isGone: true }).next?.isDisabled, true)
    const off = target({ ...next, wakeAtMs: nowMs })
    assert.deepEqual(hintStep(off, now(1), nowMs, newId), {})
    assert.deepEqual(wakeStep(off, nowMs, nowMs, newId), {})
    assert.deepEqual(endStep(off, undefined, { outcome: 'failed' }, nowMs), {})
  })

  test('that works again is forgiven all', () => {
    const bad = {
      failures: 3,
      failingSinceMs: nowMs - 9,
      openUntilMs: nowMs - 1,
      delivery: { deliveryId: 'd1', queueIds: [1] },
    }
    const { next } = endStep(target(bad), { deliveryId: 'd1', queueIds: [1] }, { outcome: 'succeeded' }, nowMs)
    assert.deepEqual(next, freshState)
  })

  test('costs no write when it works as before, or when a queue is pending already', () => {
    assert.deepEqual(endStep(target(), { deliveryId: 'd1', queueIds: [1] }, { outcome: 'succeeded' }, nowMs), {})
    const waiting = {
      sentAtMs: nowMs - 50,
      pending: [{ ...now(1), dueAtMs: nowMs - 40, lastDueAtMs: nowMs - 40 }],
      wakeAtMs: nowMs + 50,
    }
    assert.deepEqual(hintStep(target(waiting), now(1), nowMs, newId), {})
  })

  test('whose job was lost gets another one with the next hint', () => {
    const lost = { openUntilMs: nowMs + 1, pending: [now(1)], wakeAtMs: nowMs - overdueMs }
    assert.equal(hintStep(target(lost), now(1), nowMs, newId).wakeAtMs, nowMs + 1)
    const late = { ...lost, wakeAtMs: nowMs - overdueMs + 1 }
    assert.equal(hintStep(target(late), now(1), nowMs, newId).wakeAtMs, undefined)
  })

  test('is sent hints whatever a clock that runs ahead has written', () => {
    assert.deepEqual(hintStep(target({ sentAtMs: nowMs + 3_600_000 }), now(1), nowMs, newId).send, {
      deliveryId: 'd1',
      queueIds: [1],
    })
  })
})
