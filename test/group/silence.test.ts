import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { createSilenceWatch } from '../../core/group/silence.ts'

const sessionTimeoutMs = 30_000
const startMs = 10_000_000

/** What a watch says of consumer 1, last heard at `startMs`, each time that it is met, in seconds after that. */
function verdicts(metAtSeconds: number[], heardAtMs = startMs): boolean[] {
  const watch = createSilenceWatch(sessionTimeoutMs)
  return metAtSeconds.map(seconds => watch.isOver(1, heardAtMs, startMs + seconds * 1_000))
}

describe('a consumer that is met silent', () => {
  test('is given up at the second time, if that is half a session time-out after the first', () => {
    assert.deepEqual(verdicts([20, 35]), [false, true])
    assert.deepEqual(verdicts([20, 34.999]), [false, false])
    assert.deepEqual(verdicts([16, 21, 26, 30, 31]), [false, false, false, false, true])
  })

  test('is not given up at the first time, however old its heartbeat is', () => {
    assert.deepEqual(verdicts([31]), [false])
    assert.deepEqual(verdicts([100_000]), [false])
  })

  test('is not given up before the session time-out, to the millisecond', () => {
    assert.deepEqual(verdicts([15.001, 30, 30.001]), [false, false, true])
  })

  test('is not silent while its last heartbeat is as old as half a session time-out', () => {
    assert.deepEqual(verdicts([15, 30.001]), [false, false])
  })

  test('is met anew when it was heard in between, or met after a long gap', () => {
    const watch = createSilenceWatch(sessionTimeoutMs)
    assert.equal(watch.isOver(1, startMs, startMs + 20_000), false)
    assert.equal(watch.isOver(1, startMs + 20_000, startMs + 60_000), false)
    assert.equal(watch.isOver(1, startMs + 20_000, startMs + 75_000), true)
    assert.deepEqual(verdicts([20, 110]), [false, true])
    assert.deepEqual(verdicts([20, 110.001, 126]), [false, false, true])
  })

  test('is met anew after the store has failed', () => {
    const watch = createSilenceWatch(sessionTimeoutMs)
    assert.equal(watch.isOver(1, startMs, startMs + 20_000), false)
    watch.forgetAll()
    assert.equal(watch.isOver(1, startMs, startMs + 40_000), false)
    assert.equal(watch.isOver(1, startMs, startMs + 55_000), true)
  })

  test('is met anew after the clock was set back or far forwards, and given up soon after', () => {
    assert.deepEqual(verdicts([20, 20 - 3_600, 35 - 3_600]), [false, false, true])
    assert.deepEqual(verdicts([20, 20 + 3_600, 35 + 3_600]), [false, false, true])
  })

  test('is told from others', () => {
    const watch = createSilenceWatch(sessionTimeoutMs)
    watch.isOver(1, startMs, startMs + 20_000)
    assert.equal(watch.isOver(2, startMs, startMs + 40_000), false)
    assert.equal(watch.isOver(1, startMs, startMs + 40_000), true)
  })
})

/** When a consumer is heard, in pauses of up to half a session time-out, and when it is looked at. */
const life = fc.record({
  pauses: fc.array(fc.integer({ min: 1, max: 15_000 }), { minLength: 20, maxLength: 60 }),
  looks: fc.array(fc.integer({ min: 0, max: 100_000 }), { minLength: 1, maxLength: 60 }),
})

test('a consumer that is heard twice in every session time-out is never given up, whenever it is looked at', () => {
  fc.assert(
    fc.property(life, ({ pauses, looks }) => {
      const watch = createSilenceWatch(sessionTimeoutMs)
      let heardAtMs = startMs
      const heard = pauses.map(pause => (heardAtMs += pause))
      let atMs = startMs
      for (const look of looks) {
        atMs += look
        const last = heard.findLast(each => each <= atMs)
        if (last === undefined || atMs > heardAtMs) continue
        assert.equal(watch.isOver(1, last, atMs), false)
      }
    }),
    { numRuns: 300 },
  )
})

test('a consumer that is heard no more is given up by whoever looks every 10 s, within one and a half time-outs', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10_000 }), phase => {
      const watch = createSilenceWatch(sessionTimeoutMs)
      const given: number[] = []
      for (let atMs = phase; atMs <= 60_000; atMs += 10_000) {
        if (watch.isOver(1, startMs, startMs + atMs)) given.push(atMs)
      }
      const [first = Number.POSITIVE_INFINITY] = given
      assert.ok(first > sessionTimeoutMs && first <= 1.5 * sessionTimeoutMs, `given up after ${first} ms`)
    }),
  )
})
