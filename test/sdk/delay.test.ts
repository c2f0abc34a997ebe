import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { createAlarm } from '../../sdk/src/worker/alarm.ts'
import { createAppendTimes } from '../../sdk/src/worker/append-times.ts'
import { delayMsOf } from '../../sdk/src/worker/delay.ts'
import { createWaitingRoom } from '../../sdk/src/worker/waiting-room.ts'
import { createManualClock, settle } from './manual-clock.ts'

const fail = { topicType: 2, delayProcessTime: 60 } as const

suite('the delay of a message', () => {
  test('is the same for each in a queue, and in a fail queue grows with each failure up to a bound', () => {
    const grows = { ...fail, retryBackoffRate: 2, maxRetryDelay: 300 }
    assert.deepEqual(
      [0, 1, 2, 3, 4, 5, 1_000_000].map(retryCount => delayMsOf(grows, retryCount)),
      [0, 60_000, 120_000, 240_000, 300_000, 300_000, 300_000],
    )
    for (const retryCount of [0, 1, 7]) {
      assert.equal(delayMsOf(fail, retryCount), retryCount === 0 ? 0 : 60_000, 'what was resent waits no more')
      assert.equal(delayMsOf({ ...grows, topicType: 1 }, retryCount), 60_000)
      assert.equal(delayMsOf({ ...grows, delayProcessTime: 0 }, retryCount), 0)
    }
  })

  test('has no number of seconds at which it overflows', () => {
    assert.equal(delayMsOf({ topicType: 1, delayProcessTime: 43_200_000 }, 0), 43_200_000_000)
    assert.equal(delayMsOf({ ...fail, retryBackoffRate: 10 }, 1_000), 43_200_000)
  })
})

suite('the time of an append', () => {
  test('is reckoned by the clock of the service, and by the own one where that is not told', () => {
    const clock = createManualClock()
    const times = createAppendTimes(clock)
    assert.equal(times.of(1_000, 6_000), -5_000)
    assert.equal(times.of(clock.now() - 2_000, undefined), -2_000)
  })

  test('is never later than the pull, nor before that of a lower offset', () => {
    const clock = createManualClock()
    const times = createAppendTimes(clock)
    assert.equal(times.of(9_000, 6_000), 0, 'a writer whose clock is ahead')
    assert.equal(times.of(1_000, 6_000), 0, 'behind it one whose clock is not')
  })

  test('stays where it is when a clock jumps later', async () => {
    const clock = createManualClock()
    const times = createAppendTimes(clock)
    const before = times.of(1_000, 2_000)
    await clock.advance(5_000)
    const nowMs = clock.monotonic()
    assert.equal(times.of(2_000, 2_000 + 86_400_000), before, 'the service jumped ahead: not before the one before')
    assert.equal(times.of(3_000, 3_000 - 86_400_000), nowMs, 'and back')
    assert.equal(times.of(9_000, 9_000), nowMs)
  })
})

suite('the waiting room', () => {
  test('gives out what is due, in the order of time and then of offset, whatever the order in which it came', () => {
    const item = fc.record({ dueAtMs: fc.nat({ max: 20 }), offset: fc.nat() })
    fc.assert(
      fc.property(fc.uniqueArray(item, { selector: ({ offset }) => offset }), fc.nat({ max: 20 }), (items, nowMs) => {
        const room = createWaitingRoom<{ dueAtMs: number; message: { offset: number } }>()
        for (const { dueAtMs, offset } of items) room.add({ dueAtMs, message: { offset } })
        const expected = items.toSorted((a, b) => a.dueAtMs - b.dueAtMs || a.offset - b.offset)
        for (const untilMs of [nowMs, 20]) {
          while (expected[0] && expected[0].dueAtMs <= untilMs) {
            assert.equal(room.nextDueAtMs, expected[0].dueAtMs)
            assert.equal(room.takeDue(untilMs)?.message.offset, expected.shift()?.offset)
          }
          assert.equal(room.takeDue(untilMs), undefined)
          assert.equal(room.size, expected.length)
        }
      }),
    )
  })

  test('orders anew when all times change', () => {
    const room = createWaitingRoom<{ dueAtMs: number; message: { offset: number } }>()
    for (const offset of [1, 2, 3]) room.add({ dueAtMs: offset, message: { offset } })
    room.retime(({ message }) => 10 - message.offset)
    assert.deepEqual([room.takeDue(7)?.message.offset, room.takeDue(7), room.nextDueAtMs], [3, undefined, 8])
  })
})

suite('an alarm', () => {
  test('rings once at the earliest time, never early, and not again until it is set', async () => {
    const clock = createManualClock()
    const rings: number[] = []
    const alarm = createAlarm(clock, () => rings.push(clock.monotonic()))
    alarm.set(500)
    alarm.set(900)
    await clock.advance(100)
    alarm.set(200)
    await clock.advance(10_000)
    assert.deepEqual(rings, [200])
    alarm.set(10_200)
    await clock.advance(1_000)
    assert.deepEqual(rings, [200, 10_200])
    assert.equal(clock.sleeping, 0)
  })

  test('a timer that ends early is waited out', async () => {
    const clock = createManualClock()
    let rings = 0
    const hasty = { ...clock, sleep: (ms: number, signal?: AbortSignal) => clock.sleep(Math.min(ms, 100), signal) }
    createAlarm(hasty, () => rings++).set(250)
    await clock.advance(249)
    assert.equal(rings, 0)
    await clock.advance(1)
    assert.equal(rings, 1)
  })

  test('does not ring when it is closed, and leaves nothing waiting', async () => {
    const clock = createManualClock()
    const alarm = createAlarm(clock, () => assert.fail())
    alarm.set(500)
    alarm.close()
    alarm.set(600)
    await settle()
    assert.equal(clock.sleeping, 0)
    await clock.advance(1_000)
  })
})
