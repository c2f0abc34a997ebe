import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  boundaryLifeMs,
  createBoundaries,
  endOf,
  isBoundary,
  isDueForDeletion,
  ttlDelayMs,
} from '../../core/log/boundaries.ts'
import { limits } from '../../core/protocol/limits.ts'
import { batchOf } from '../store/contract.ts'

describe('a remembered boundary', () => {
  const create = () => {
    const time = { nowMs: 1_000_000 }
    return { time, boundaries: createBoundaries(() => time.nowMs) }
  }

  test('is known for five minutes from when its proof was asked for', () => {
    const { time, boundaries } = create()
    boundaries.set(1, 42, time.nowMs - 60_000)
    time.nowMs += boundaryLifeMs - 60_000 - 1
    assert.equal(boundaries.get(1), 42)
    time.nowMs += 1
    assert.equal(boundaries.get(1), undefined)
  })

  test('stays forgotten when the clock goes back after that, and is forgotten when it goes back before', () => {
    const { time, boundaries } = create()
    boundaries.set(1, 42, time.nowMs)
    boundaries.set(2, 43, time.nowMs)
    time.nowMs += boundaryLifeMs
    assert.equal(boundaries.get(1), undefined)
    time.nowMs -= boundaryLifeMs
    assert.equal(boundaries.get(1), undefined)
    time.nowMs -= 1
    assert.equal(boundaries.get(2), undefined)
  })

  test('is one for each queue, and the last that was learned', () => {
    const { time, boundaries } = create()
    boundaries.set(1, 42, time.nowMs)
    boundaries.set(2, 7, time.nowMs)
    boundaries.set(1, 40, time.nowMs)
    assert.deepEqual([boundaries.get(1), boundaries.get(2), boundaries.get(3)], [40, 7, undefined])
  })

  test('is remembered for ten thousand queues, of which the least used are forgotten', () => {
    const { time, boundaries } = create()
    for (let queueId = 1; queueId <= 10_001; queueId++) boundaries.set(queueId, queueId, time.nowMs)
    assert.equal(boundaries.get(1), undefined)
    assert.equal(boundaries.get(2), 2)
    assert.equal(boundaries.get(10_001), 10_001)
  })

  test('lives far shorter than any batch', () => {
    assert.ok(boundaryLifeMs * 10 < limits.minRetentionMs + ttlDelayMs)
  })
})

describe('a log goes on', () => {
  const tail = batchOf(1, 10, { count: 5, expiresAtMs: 1_000 })
  const dueAtMs = 1_000 + ttlDelayMs

  test('where its last batch ends, and nowhere else', () => {
    assert.equal(endOf(tail), 15)
    assert.ok(isBoundary(tail, 15, 500))
    for (const base of [1, 10, 12, 14, 16, 100]) assert.ok(!isBoundary(tail, base, dueAtMs - 1), `at ${base}`)
  })

  test('further on too once its last batch is due for deletion, since those behind it may be gone', () => {
    assert.ok(!isDueForDeletion(tail, dueAtMs - 1))
    assert.ok(isDueForDeletion(tail, dueAtMs))
    assert.ok(isBoundary(tail, 100, dueAtMs))
    for (const base of [1, 10, 14]) assert.ok(!isBoundary(tail, base, dueAtMs))
  })

  test('anywhere when it is empty: the caller knows better', () => {
    assert.ok(isBoundary(undefined, 1, 0))
    assert.ok(isBoundary(undefined, 77, 0))
  })
})
