import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createTrialTurns } from '../../sdk/src/worker/trial-turns.ts'
import { createManualClock, settle } from './manual-clock.ts'

function setUp() {
  const clock = createManualClock()
  const turns = createTrialTurns(clock)
  const begun: string[] = []
  const take = (name: string, maxMs = 1_000) => {
    const turn = turns.take(maxMs)
    void turn.begun.then(() => begun.push(name))
    return turn
  }
  return { clock, take, begun }
}

suite('turns of trials', () => {
  test('come one after the other, in the order in which they were asked for', async () => {
    const { take, begun } = setUp()
    const [a, b] = [take('a'), take('b')]
    take('c')
    await settle()
    assert.deepEqual(begun, ['a'])
    a.pass()
    a.pass()
    await settle()
    assert.deepEqual(begun, ['a', 'b'])
    b.pass()
    await settle()
    assert.deepEqual(begun, ['a', 'b', 'c'])
  })

  test('end after their time, and pass nobody else’s on by then', async () => {
    const { clock, take, begun } = setUp()
    const a = take('a', 100)
    take('b', 5_000)
    take('c')
    await clock.advance(99)
    assert.deepEqual(begun, ['a'])
    await clock.advance(1)
    assert.deepEqual(begun, ['a', 'b'])
    a.pass()
    await clock.advance(4_999)
    assert.deepEqual(begun, ['a', 'b'])
    await clock.advance(1)
    assert.deepEqual(begun, ['a', 'b', 'c'])
  })

  test('are left out by those who pass before', async () => {
    const { clock, take, begun } = setUp()
    const a = take('a')
    take('b').pass()
    const c = take('c')
    a.pass()
    await settle()
    assert.deepEqual(begun, ['a', 'c'])
    c.pass()
    await clock.advance(10_000)
    assert.equal(clock.sleeping, 0)
  })
})
