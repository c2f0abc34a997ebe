import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { PullResponse } from '../../core/protocol/pull.ts'
import { PmqClientError } from '../../sdk/src/errors.ts'
import { createPull } from '../../sdk/src/worker/pull.ts'
import { createManualClock, settle } from './manual-clock.ts'

/** Begins to pull behind offset 0; `answers` are given one by one, then empty ones. */
function begin(answers: (PullResponse | Error | 'hold')[] = [], { startOffset = 0, maxPauseMs = 5_000 } = {}) {
  const clock = createManualClock()
  const asked: { position: number; atMs: number }[] = []
  const added: number[] = []
  const skipped: [number, number][] = []
  const failed: number[] = []
  const room = { isThere: true }
  const pull = createPull(
    {
      async ask(position, signal) {
        asked.push({ position, atMs: clock.monotonic() })
        const answer = answers.shift() ?? { suc: true, batches: [] }
        if (answer === 'hold') {
          await clock.sleep(4_000, signal)
          if (signal.aborted) throw new Error('aborted')
          return { suc: true, batches: [] }
        }
        if (answer instanceof Error) throw answer
        return answer
      },
      add({ offset, msgs }, firstIndex) {
        for (let index = firstIndex; index < msgs.length; index++) added.push(offset + index)
      },
      wantsMore: () => room.isThere,
      onRest: () => undefined,
      onSkipped: (firstOffset, count) => skipped.push([firstOffset, count]),
      onFailed: (_, retryInMs) => failed.push(retryInMs),
      clock,
      random: () => 0.5,
      pullDeltaTimeMs: 150,
    },
    startOffset,
    maxPauseMs,
  )
  const ended = pull.run()
  return { clock, asked, added, skipped, failed, room, pull, ended }
}

const answer = (...batches: [offset: number, count: number][]): PullResponse => ({
  suc: true,
  batches: batches.map(([offset, count]) => ({ offset, time: 0, msgs: new Array(count).fill({ body: '' }) })),
})

suite('the pull loop', () => {
  test('asks again at once while there are messages, each time behind the last one', async () => {
    const { asked, added, pull, ended } = begin([answer([1, 2], [3, 1]), answer([4, 2])])
    await settle()
    assert.deepEqual(added, [1, 2, 3, 4, 5])
    assert.deepEqual(asked, [
      { position: 0, atMs: 0 },
      { position: 3, atMs: 0 },
      { position: 5, atMs: 0 },
    ])
    assert.equal(pull.position, 5)
    pull.stop()
    await ended
  })

  test('pauses of an empty queue grow by pullDeltaTime up to maxPullTime', async () => {
    const { clock, asked, pull, ended } = begin([], { maxPauseMs: 400 })
    await clock.advance(2_000)
    const pauses = asked.slice(1).map(({ atMs }, index) => atMs - (asked[index]?.atMs ?? 0))
    assert.deepEqual(pauses, [50, 200, 350, 400, 400, 400])
    pull.stop()
    await ended
  })

  test('a message begins the pauses anew', async () => {
    const { clock, asked, pull, ended } = begin([answer(), answer(), answer([1, 1])])
    await clock.advance(300)
    assert.deepEqual(
      asked.map(({ atMs }) => atMs),
      [0, 50, 250, 250, 300],
    )
    pull.stop()
    await ended
  })

  test('a pull that the service has held has been waited for already', async () => {
    const { clock, asked, pull, ended } = begin(['hold', 'hold'])
    await clock.advance(8_000)
    assert.deepEqual(
      asked.map(({ atMs }) => atMs),
      [0, 4_000, 8_000],
    )
    pull.stop()
    await ended
  })

  test('a pull that is answered because the group has changed begins the pauses anew', async () => {
    const empty = (version: number): PullResponse => ({ suc: true, batches: [], version })
    const { clock, asked, pull, ended } = begin([empty(1), empty(1), empty(1), empty(2), empty(2)])
    await clock.advance(900)
    assert.deepEqual(
      asked.map(({ atMs }) => atMs),
      [0, 50, 250, 600, 650, 850],
    )
    pull.stop()
    await ended
  })

  test('drops what it has and tells what is gone', async () => {
    const { added, skipped, pull, ended } = begin([answer([4, 4], [6, 2], [20, 2])], { startOffset: 5 })
    await settle()
    assert.deepEqual(added, [6, 7, 20, 21])
    assert.deepEqual(skipped, [[8, 12]])
    pull.stop()
    await ended
  })

  test('an answer that brings nothing new is no reason to ask again at once', async () => {
    const { asked, pull, ended } = begin([answer([1, 2]), answer([1, 2]), answer([1, 2])])
    await settle()
    assert.equal(asked.length, 2)
    pull.stop()
    await ended
  })

  test('a failed pull is repeated after a growing pause, whatever was thrown', async () => {
    const errors = Array.from({ length: 12 }, () => new Error('reset'))
    const { clock, asked, failed, added, pull, ended } = begin([...errors, answer([1, 1])])
    await clock.advance(60_000)
    assert.deepEqual(failed.slice(0, 8), [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
    assert.ok(asked.slice(1, 13).every(({ atMs }, index) => atMs - (asked[index]?.atMs ?? 0) >= 50))
    assert.deepEqual(added, [1])
    pull.stop()
    await ended
  })

  test('a failed pull waits as long as the service asks', async () => {
    const { clock, failed, added, pull, ended } = begin([
      new PmqClientError('throttled', 'slower', { status: 429, retryAfterMs: 20_000 }),
      answer([1, 1]),
    ])
    await clock.advance(19_999)
    assert.deepEqual([failed, added, pull.failures], [[20_000], [], 1])
    await clock.advance(1)
    assert.deepEqual([added, pull.failures], [[1], 0])
    pull.stop()
    await ended
  })

  test('an answer that cannot be read is a failed pull', async () => {
    const { clock, failed, added, pull, ended } = begin([
      JSON.parse('{"suc":true,"batches":[{"offset":1}]}'),
      answer([1, 1]),
    ])
    await clock.advance(1_000)
    assert.deepEqual([failed.length, added], [1, [1]])
    pull.stop()
    await ended
  })

  test('stops asking while the buffer wants nothing, and goes on when it does', async () => {
    const { clock, asked, room, pull, ended } = begin([answer([1, 1]), answer([2, 1])])
    room.isThere = false
    await clock.advance(60_000)
    assert.equal(asked.length, 1)
    room.isThere = true
    pull.roomChanged()
    await settle()
    assert.equal(asked.length, 3)
    pull.stop()
    await ended
  })

  test('asks nothing while it is paused', async () => {
    const { clock, asked, pull, ended } = begin()
    pull.setPaused(true)
    await clock.advance(60_000)
    assert.equal(asked.length, 1)
    pull.setPaused(false)
    await settle()
    assert.equal(asked.length, 2)
    pull.stop()
    await ended
  })

  test('ends at once when stopped: before, in, and between pulls, and while there is no room', async () => {
    for (const answers of [['hold' as const], [], [new Error('reset')]]) {
      const { clock, pull, ended } = begin(answers)
      await clock.advance(10)
      pull.stop()
      await ended
      assert.equal(clock.sleeping, 0)
    }
    const { pull, ended, room } = begin([answer([1, 1])])
    room.isThere = false
    await settle()
    pull.stop()
    await ended
  })

  test('says when it was last answered', async () => {
    const { clock, pull, ended } = begin(['hold', new Error('reset')])
    assert.equal(pull.lastPullAtMs, undefined)
    await clock.advance(4_000)
    assert.equal(pull.lastPullAtMs, clock.now())
    await clock.advance(60)
    assert.equal(pull.lastPullAtMs, clock.now() - 60)
    pull.stop()
    await ended
  })

  test('a hint ends the pause of an empty queue at once, and the pauses begin anew', async () => {
    const { clock, asked, pull, ended } = begin()
    await clock.advance(20_000)
    const before = asked.length
    const atMs = clock.monotonic()
    pull.hint()
    await settle()
    assert.deepEqual(asked.slice(before), [{ position: 0, atMs }])
    await clock.advance(50)
    assert.equal(asked.length, before + 2)
    pull.stop()
    await ended
  })

  test('a hint during a request is remembered: the queue is asked once more, behind what came', async () => {
    const { clock, asked, pull, ended } = begin([answer([1, 1]), 'hold'])
    await settle()
    pull.hint()
    pull.hint()
    await clock.advance(4_000)
    assert.deepEqual(
      asked.map(({ atMs }) => atMs),
      [0, 0, 4_000],
    )
    assert.equal(pull.activity.state, 'waiting')
    pull.stop()
    await ended
  })

  test('hints without an end make no hot loop where there is nothing', async () => {
    const { clock, asked, pull, ended } = begin()
    for (let ms = 0; ms < 1_000; ms++) {
      pull.hint()
      await clock.advance(1)
    }
    assert.ok(asked.length > 15 && asked.length <= 22, `${asked.length} pulls`)
    pull.stop()
    await ended
  })

  test('a hint shortens no pause after a failure, and asks nothing of a queue that is paused or full', async () => {
    const { clock, asked, failed, room, pull, ended } = begin([new Error('reset')])
    await settle()
    pull.hint()
    await clock.advance((failed[0] ?? 0) - 1)
    assert.equal(asked.length, 1)
    room.isThere = false
    await clock.advance(60_000)
    pull.hint()
    await settle()
    room.isThere = true
    pull.setPaused(true)
    pull.hint()
    await clock.advance(60_000)
    assert.equal(asked.length, 1)
    pull.stop()
    await ended
  })
})
