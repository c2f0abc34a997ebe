import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseMessages } from '../../core/log/encoding.ts'
import { basesOf, createReading, hourMs } from './reading.ts'

const nothing = { bases: [], skipped: 0 }

describe('a reader', () => {
  test('is given whole batches in order, with their text and times', async () => {
    const { append, readAfter, clock } = createReading()
    append([2, 1, 3])
    const { batches, skipped } = await readAfter(0)
    assert.equal(skipped, 0)
    assert.deepEqual(
      batches.map(({ base, count, text }) => ({ base, count, bodies: parseMessages(text).map(({ body }) => body) })),
      [
        { base: 1, count: 2, bodies: ['1', '2'] },
        { base: 3, count: 1, bodies: ['3'] },
        { base: 4, count: 3, bodies: ['4', '5', '6'] },
      ],
    )
    assert.deepEqual(
      batches.map(({ appendedAtMs, expiresAtMs }) => [appendedAtMs, expiresAtMs]),
      batches.map(() => [clock.now(), clock.now() + hourMs]),
    )
  })

  test('is given at least one batch, and else stops before the one that would be too much', async () => {
    const { append, readAfter, log } = createReading()
    append([1, 1, 1, 1])
    const textLength = (log.list()[0]?.bytes.length ?? 0) * 2
    for (const source of ['the store', 'the cache']) {
      assert.equal((await readAfter(0, { maxTextLength: 1 })).batches.length, 1, source)
      assert.equal((await readAfter(0, { maxTextLength: textLength })).batches.length, 2, source)
      assert.equal((await readAfter(0, { maxMessages: 3 })).batches.length, 3, source)
    }
  })

  test('in the middle of a batch is given that batch and those behind it', async () => {
    const { append, readAfter } = createReading()
    append([4, 2])
    for (const after of [1, 2, 3]) assert.deepEqual(basesOf(await readAfter(after)), { bases: [1, 5], skipped: 0 })
    assert.deepEqual(basesOf(await readAfter(5)), { bases: [5], skipped: 0 })
  })

  test('at the end, beyond it, and of an empty queue is given nothing', async () => {
    const { append, readAfter } = createReading()
    assert.deepEqual(basesOf(await readAfter(0)), nothing)
    assert.deepEqual(basesOf(await readAfter(7)), nothing)
    append([2])
    assert.deepEqual(basesOf(await readAfter(2)), nothing)
    assert.deepEqual(basesOf(await readAfter(9)), nothing)
  })

  test('that waits at the end costs one read each time', async () => {
    const { append, readAfter, calls } = createReading()
    append([2])
    await readAfter(2)
    const before = calls.length
    for (let i = 0; i < 10; i++) await readAfter(2)
    assert.equal(calls.length - before, 10)
  })

  test('is not given what a replica shows behind a batch that it does not show yet', async () => {
    const { append, readAfter, hidden } = createReading()
    append([1, 1, 1])
    hidden.add(2)
    assert.deepEqual(basesOf(await readAfter(0)), { bases: [1], skipped: 0 })
    const read = await readAfter(1)
    assert.deepEqual(basesOf(read), { bases: [2, 3], skipped: 0 })
  })

  test('is given nothing while a replica shows no more than the reader has', async () => {
    const { append, readAfter, hidden } = createReading()
    append([1, 1])
    hidden.add(2)
    assert.deepEqual(basesOf(await readAfter(1)), nothing)
    hidden.clear()
    assert.deepEqual(basesOf(await readAfter(1)), { bases: [2], skipped: 0 })
  })

  test('in the middle of a batch is given the rest also where the replica does not show that batch', async () => {
    const { append, readAfter, hidden } = createReading()
    append([3, 1])
    hidden.add(1)
    assert.deepEqual(basesOf(await readAfter(1)), { bases: [1, 4], skipped: 0 })
  })
})

describe('behind batches that are past retention or trimmed, a reader', () => {
  for (const count of [1, 63, 64, 65, 100, 101, 250]) {
    test(`goes on at the first live batch and is told what it has skipped, of ${count} batches`, async () => {
      const { append, readAfter, log, clock } = createReading()
      append(Array.from({ length: count }, () => 2))
      clock.step(hourMs)
      append([1])
      assert.deepEqual(basesOf(await readAfter(0)), { bases: [2 * count + 1], skipped: 2 * count })
      for (const base of [...log.batches.keys()].slice(0, count)) log.batches.delete(base)
      assert.deepEqual(basesOf(await readAfter(1)), { bases: [2 * count + 1], skipped: 2 * count - 1 })
    })
  }

  test('goes on behind a hole of trimmed batches in the middle', async () => {
    const { append, readAfter, log } = createReading()
    append([1, 1, 1, 1, 1])
    for (const base of [2, 4]) log.batches.delete(base)
    assert.deepEqual(basesOf(await readAfter(0)), { bases: [1], skipped: 0 })
    assert.deepEqual(basesOf(await readAfter(1)), { bases: [3], skipped: 1 })
    assert.deepEqual(basesOf(await readAfter(3)), { bases: [5], skipped: 1 })
  })

  test('stops before a batch that is past retention earlier than those around it', async () => {
    const { append, readAfter, clock } = createReading()
    append([1], 3 * hourMs)
    append([1], hourMs)
    append([1], 3 * hourMs)
    clock.step(2 * hourMs)
    assert.deepEqual(basesOf(await readAfter(0)), { bases: [1], skipped: 0 })
    assert.deepEqual(basesOf(await readAfter(1)), { bases: [3], skipped: 1 })
  })

  test('in the middle of such a batch skips the rest of it', async () => {
    const { append, readAfter, clock } = createReading()
    append([5])
    clock.step(hourMs)
    append([1])
    assert.deepEqual(basesOf(await readAfter(2)), { bases: [6], skipped: 3 })
  })

  test('is told of nothing skipped while there is nothing live, and of all once there is', async () => {
    const { append, readAfter, clock } = createReading()
    append([2, 2])
    clock.step(hourMs)
    assert.deepEqual(basesOf(await readAfter(0)), nothing)
    append([1])
    assert.deepEqual(basesOf(await readAfter(0)), { bases: [5], skipped: 4 })
  })

  test('that waits there does not look at all of them again each time', async () => {
    const { append, readAfter, clock, count } = createReading()
    append(Array.from({ length: 1_000 }, () => 1))
    clock.step(hourMs)
    await readAfter(0)
    const before = count('readHeaders')
    for (let i = 0; i < 5; i++) await readAfter(0)
    assert.ok(count('readHeaders') - before <= 5)
  })

  test('does not take a batch that is put while it looks for a trimmed one', async () => {
    const reading = createReading()
    const { append, readAfter, clock } = reading
    append([1, 1])
    clock.step(hourMs)
    const [, late] = append([1, 1])
    // The query passed offset 3 before the batch was there, and found the next one.
    reading.next('readHeaders', { answer: [...reading.log.list().slice(0, 2), late] })
    assert.deepEqual(basesOf(await readAfter(0)), { bases: [3, 4], skipped: 2 })
  })

  test('does not take one for trimmed either where it knows what is past retention', async () => {
    const reading = createReading()
    const { append, readAfter, clock } = reading
    append([1, 1])
    clock.step(hourMs)
    assert.deepEqual(basesOf(await readAfter(0)), nothing)
    const [, late] = append([1, 1])
    reading.next('readHeaders', { answer: [late] })
    assert.deepEqual(basesOf(await readAfter(0)), { bases: [3, 4], skipped: 2 })
  })
})

describe('the cache of batches', () => {
  test('serves what was read or just stored without a read', async () => {
    const { append, readAfter, reader, calls, clock } = createReading()
    append([1, 1])
    await readAfter(0)
    reader.remember(1, { base: 3, count: 1, appendedAtMs: 0, expiresAtMs: clock.now() + hourMs, text: '[]' })
    const before = calls.length
    assert.deepEqual(basesOf(await readAfter(0)), { bases: [1, 2, 3], skipped: 0 })
    assert.deepEqual(basesOf(await readAfter(2)), { bases: [3], skipped: 0 })
    assert.equal(calls.length, before)
  })

  test('serves a reader with what his last pull has read too much of', async () => {
    const { append, readAfter, calls } = createReading()
    append(Array.from({ length: 60 }, () => 1))
    const bases = []
    for (let at = 0; at < 60; ) {
      const read = await readAfter(at, { maxMessages: 7 })
      bases.push(...read.batches.map(({ base }) => base))
      at = bases.length
    }
    assert.deepEqual(
      bases,
      Array.from({ length: 60 }, (_, i) => i + 1),
    )
    assert.equal(calls.length, 1)
  })

  test('keeps the batches of one queue from the readers of another', async () => {
    const { reader, readAfter, clock } = createReading()
    reader.remember(2, { base: 1, count: 1, appendedAtMs: 0, expiresAtMs: clock.now() + hourMs, text: '[]' })
    assert.deepEqual(basesOf(await readAfter(0)), nothing)
  })

  test('never serves a batch past retention', async () => {
    const { append, readAfter, clock } = createReading()
    append([1])
    append([1], 2 * hourMs)
    assert.deepEqual(basesOf(await readAfter(0)), { bases: [1, 2], skipped: 0 })
    clock.step(hourMs)
    assert.deepEqual(basesOf(await readAfter(0)), { bases: [2], skipped: 1 })
    clock.step(hourMs)
    assert.deepEqual(basesOf(await readAfter(1)), nothing)
  })

  test('holds no more text than it may, and reads the rest again', async () => {
    const { append, readAfter, count } = createReading({ cacheTextLength: 1_000 })
    append(Array.from({ length: 50 }, () => 1))
    assert.equal((await readAfter(0)).batches.length, 50)
    const before = count('readBatches')
    assert.equal((await readAfter(0)).batches.length, 50)
    assert.equal(count('readBatches') - before, 1)
  })
})
