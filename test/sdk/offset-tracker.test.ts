import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { createOffsetTracker, type Span } from '../../sdk/src/worker/offset-tracker.ts'

suite('the offset tracker', () => {
  test('may commit nothing past the first unfinished message', () => {
    const tracker = createOffsetTracker(10)
    const first = tracker.started(12, 2)
    const second = tracker.started(15, 3)
    const third = tracker.started(16, 1)
    assert.equal(tracker.finished(third, 1), false)
    assert.equal(tracker.finished(second, 3), false)
    assert.deepEqual([tracker.committable, tracker.uncommittable], [10, 6])
    assert.equal(tracker.finished(first, 1), false, 'one of its two is not done')
    assert.equal(tracker.finished(first, 1), true)
    assert.deepEqual([tracker.committable, tracker.uncommittable], [16, 0])
  })

  test('whatever the order in which messages finish, it may commit just those before which none is unfinished', () => {
    const scenario = fc.record({
      start: fc.nat({ max: 1_000 }),
      steps: fc.array(fc.record({ starts: fc.boolean(), size: fc.integer({ min: 1, max: 9 }), pick: fc.nat() }), {
        maxLength: 100,
      }),
    })
    fc.assert(
      fc.property(scenario, ({ start, steps }) => {
        const tracker = createOffsetTracker(start)
        const running: { span: Span; from: number; size: number }[] = []
        let started = start
        for (const { starts, size, pick } of steps) {
          const before = tracker.committable
          if (starts || running.length === 0) {
            running.push({ span: tracker.started(started + size, size), from: started + 1, size })
            started += size
            assert.equal(tracker.committable, before)
          } else {
            const [ended] = running.splice(pick % running.length, 1)
            assert.ok(ended)
            assert.equal(tracker.finished(ended.span, ended.size), tracker.committable > before)
          }
          const firstUnfinished = Math.min(started + 1, ...running.map(({ from }) => from))
          assert.equal(tracker.committable, firstUnfinished - 1)
          assert.equal(tracker.uncommittable, started - tracker.committable)
        }
      }),
    )
  })
})
