import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createLooks, type LookMade } from '../../core/tick/looks.ts'

const minuteMs = 60_000
const startMs = Date.UTC(2026, 0, 1)
const idle: LookMade = {
  state: 'same',
  isInUse: false,
  hasMembers: true,
  isUrgent: false,
  withinMs: Number.POSITIVE_INFINITY,
}

/** In which of so many minutes a container looks at a group, if each look finds what `find` says. */
function minutesOf(count: number, find: (minute: number) => LookMade, { watched }: { watched?: number } = {}) {
  const looks = createLooks()
  const minutes: number[] = []
  for (let minute = 0; minute < count; minute++) {
    const nowMs = startMs + minute * minuteMs
    if (!looks.isDue('billing', nowMs, watched)) continue
    minutes.push(minute)
    looks.note('billing', find(minute), nowMs)
  }
  return minutes
}
const gapsOf = (minutes: readonly number[]) => minutes.slice(1).map((minute, i) => minute - (minutes[i] ?? 0))

describe('when a container looks at a group', () => {
  test('is spread over a quarter of an hour for one that knows of none', () => {
    const looks = createLooks()
    const names = Array.from({ length: 1_500 }, (_, i) => `group-${i}`)
    const counts = Array.from({ length: 15 }, (_, minute) => {
      return names.filter(name => looks.isDue(name, startMs + minute * minuteMs, undefined)).length
    })
    assert.equal(
      counts.reduce((sum, count) => sum + count),
      names.length,
    )
    assert.ok(
      counts.every(count => count > 50 && count < 150),
      `${counts}`,
    )
  })

  test('is each minute while something happens, and from its first look on where that finds that something has', () => {
    const used = gapsOf(minutesOf(60, minute => ({ ...idle, state: `${minute}`, isInUse: true })))
    assert.ok(used.length >= 44 && used.every(gap => gap === 1), `${used}`)
  })

  test('is twice as late each time that nothing has happened, up to 15 minutes, and to an hour where nobody runs', () => {
    const ceased = (hasMembers: boolean) =>
      gapsOf(minutesOf(400, minute => ({ ...idle, hasMembers, isInUse: true, state: `${Math.min(minute, 20)}` })))
    assert.deepEqual(
      ceased(true).filter(gap => gap > 1),
      [2, 4, 8, ...ceased(true).filter(gap => gap === 15)],
    )
    assert.deepEqual(
      ceased(false).filter(gap => gap > 1),
      [2, 4, 8, 16, 32, ...ceased(false).filter(gap => gap === 60)],
    )
    assert.ok(ceased(false).includes(60))
  })

  test('is not before long for one that its first look finds idle', () => {
    assert.deepEqual([...new Set(gapsOf(minutesOf(100, () => idle)))], [15])
  })

  test('is a minute later again once something happens', () => {
    const minutes = minutesOf(120, minute => ({ ...idle, state: minute < 60 ? 'before' : 'after' }))
    const first = minutes.find(minute => minute >= 60) ?? 0
    assert.deepEqual(minutes.filter(minute => minute > first).slice(0, 4), [
      first + 1,
      first + 3,
      first + 7,
      first + 15,
    ])
  })

  test('is in time for what may have to be said, and each minute where it is urgent', () => {
    assert.deepEqual([...new Set(gapsOf(minutesOf(100, () => ({ ...idle, withinMs: 4.5 * minuteMs }))))], [4])
    assert.deepEqual([...new Set(gapsOf(minutesOf(100, () => ({ ...idle, withinMs: 1 }))))], [1])
    assert.deepEqual([...new Set(gapsOf(minutesOf(100, () => ({ ...idle, isUrgent: true }))))], [1])
  })

  test('is at once where somebody watches, and then no later than he may', () => {
    const minutes = minutesOf(60, () => idle, { watched: 5 })
    assert.equal(minutes[0], 0)
    assert.deepEqual([...new Set(gapsOf(minutes))], [5])
  })

  test('is by its own minute where the clock was set back', () => {
    const looks = createLooks()
    looks.note('billing', idle, startMs + 1_000 * minuteMs)
    const due = Array.from({ length: 15 }, (_, minute) =>
      looks.isDue('billing', startMs + minute * minuteMs, undefined),
    )
    assert.equal(due.filter(Boolean).length, 1)
  })
})
