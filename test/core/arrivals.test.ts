import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createArrivals, groupArrival, queueArrival } from '../../core/arrivals.ts'
import { createManualClock } from '../support/manual-clock.ts'

const settle = () => new Promise(resolve => setImmediate(resolve))

/** A clock that knows who sleeps, and who has. */
function countingClock() {
  const clock = createManualClock()
  const sleeping = new Set<AbortSignal | undefined>()
  const everSlept: (AbortSignal | undefined)[] = []
  return {
    everSlept,
    clock: {
      ...clock,
      async sleep(ms: number, signal?: AbortSignal) {
        everSlept.push(signal)
        sleeping.add(signal)
        await clock.sleep(ms, signal)
        sleeping.delete(signal)
      },
    },
    advance: clock.advance,
    sleeping,
  }
}

describe('an arrival', () => {
  test('wakes all who wait for it at once, and nobody else', async () => {
    const { clock, sleeping, advance } = countingClock()
    const arrivals = createArrivals(clock)
    const [one, other] = [queueArrival(1), queueArrival(2)]
    const waits = [[one], [other, one], [other]].map(topics => arrivals.wait(arrivals.mark(topics), 1_000))
    arrivals.announce(one)
    assert.deepEqual(await Promise.all(waits.slice(0, 2)), ['announced', 'announced'])
    await settle()
    assert.equal(sleeping.size, 1)
    advance(1_000)
    assert.equal(await waits[2], 'time')
  })

  test('between the mark and the wait is not missed', async () => {
    const { clock } = countingClock()
    const arrivals = createArrivals(clock)
    const mark = arrivals.mark([queueArrival(1), groupArrival('g')])
    arrivals.announce(groupArrival('g'))
    assert.equal(await arrivals.wait(mark, 1_000), 'announced')
  })

  test('before the mark is not waited for again', async () => {
    const { clock, advance } = countingClock()
    const arrivals = createArrivals(clock)
    arrivals.announce(queueArrival(1))
    const wait = arrivals.wait(arrivals.mark([queueArrival(1)]), 1_000)
    await settle()
    advance(1_000)
    assert.equal(await wait, 'time')
  })

  test('of a queue is not that of a group of the same name', async () => {
    assert.notEqual(queueArrival(1), groupArrival('1'))
  })
})

describe('a wait', () => {
  test('ends by time when nothing is announced', async () => {
    const { clock, advance } = countingClock()
    const arrivals = createArrivals(clock)
    const wait = arrivals.wait(arrivals.mark([queueArrival(1)]), 1_000)
    await settle()
    advance(999)
    let hasEnded = false
    void wait.then(() => {
      hasEnded = true
    })
    await settle()
    assert.equal(hasEnded, false)
    advance(1)
    assert.equal(await wait, 'time')
  })

  test('leaves nobody waiting behind, however it ends', async () => {
    const { clock, sleeping, everSlept, advance } = countingClock()
    const arrivals = createArrivals(clock)
    const topics = ['a', 'b', 'a', 'c']
    const waits = Array.from({ length: 50 }, () => arrivals.wait(arrivals.mark(topics), 1_000))
    arrivals.announce('b')
    await Promise.all(waits)
    assert.equal(sleeping.size, 0)
    const late = arrivals.wait(arrivals.mark(topics), 1_000)
    await settle()
    advance(1_000)
    await late
    for (const topic of topics) arrivals.announce(topic)
    arrivals.close()
    assert.equal(everSlept.at(-1)?.aborted, false, 'it is still known as one who waits')
  })

  test('is over when the process is about to end, and so is every later one', async () => {
    const { clock, sleeping } = countingClock()
    const arrivals = createArrivals(clock)
    const waits = ['a', 'b'].map(topic => arrivals.wait(arrivals.mark([topic]), 1_000))
    arrivals.close()
    arrivals.close()
    assert.deepEqual(await Promise.all(waits), ['closed', 'closed'])
    assert.equal(await arrivals.wait(arrivals.mark(['a']), 1_000), 'closed')
    await settle()
    assert.equal(sleeping.size, 0)
  })
})
