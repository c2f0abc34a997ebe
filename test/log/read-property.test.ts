import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ReadResult } from '../../core/log/read.ts'
import type { Batch } from '../../core/model.ts'
import type { HeaderQuery } from '../../core/store.ts'
import { createReading, hourMs, type Reading } from './reading.ts'

/** What can happen to a log between two reads, and what the next read meets. */
type Event =
  | { kind: 'append'; counts: number[]; livesHours: number }
  | { kind: 'pass'; hours: number }
  | { kind: 'trim'; share: number }
  | { kind: 'hide'; picks: number[] }
  | { kind: 'tear' }
  | { kind: 'read'; maxMessages: number }
  | { kind: 'forget'; inBatch: number }

const counts = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 6 })
const event: fc.Arbitrary<Event> = fc.oneof(
  fc.record({ kind: fc.constant('append' as const), counts, livesHours: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ kind: fc.constant('pass' as const), hours: fc.integer({ min: 1, max: 2 }) }),
  fc.record({ kind: fc.constant('trim' as const), share: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ kind: fc.constant('hide' as const), picks: fc.array(fc.nat(8), { maxLength: 4 }) }),
  fc.record({ kind: fc.constant('tear' as const) }),
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('read' as const), maxMessages: fc.integer({ min: 1, max: 9 }) }),
  },
  fc.record({ kind: fc.constant('forget' as const), inBatch: fc.nat(2) }),
)

test('a reader is given every live batch once and in order, and steps over none that is live, whatever replicas show', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(event, { minLength: 5, maxLength: 60 }), fc.boolean(), async (events, hasCache) => {
      const reading = createReading({ cacheTextLength: hasCache ? 1e6 : 300 })
      const follower = follow(reading)
      for (const each of events) await apply(reading, follower, each)
      reading.hidden.clear()
      while ((await follower.read(5)) > 0) {
        // Until there is no more.
      }
      const left = reading.log
        .list()
        .filter(batch => isLive(reading, batch) && batch.base + batch.count - 1 > follower.at)
      assert.deepEqual(left, [])
    }),
    { numRuns: 300 },
  )
})

type Follower = { at: number; read(maxMessages: number): Promise<number> }

/** Reads on from where it is, and compares with what the log really holds. */
function follow(reading: Reading): Follower {
  const follower = {
    at: 0,
    async read(maxMessages: number) {
      const result = await reading.readAfter(follower.at, { maxMessages })
      judge(reading, follower.at, result)
      const last = result.batches.at(-1)
      if (last) follower.at = last.base + last.count - 1
      return result.batches.length
    },
  }
  return follower
}

function judge(reading: Reading, at: number, result: ReadResult): void {
  const [first] = result.batches
  let next = first && first.base <= at ? first.base : at + 1 + result.skipped
  for (const batch of result.batches) {
    assert.equal(batch.base, next, `behind ${at} came a batch at ${batch.base}`)
    assert.ok(batch.expiresAtMs > reading.clock.now(), 'a batch past retention was served')
    assert.equal(JSON.parse(batch.text)[0].body, String(batch.base))
    assert.equal(JSON.parse(batch.text).length, batch.count)
    next += batch.count
  }
  if (!first) assert.equal(result.skipped, 0)
  const stepped = reading.log
    .list()
    .filter(batch => first && batch.base > at && batch.base < first.base && isLive(reading, batch))
  assert.deepEqual(stepped, [], `behind ${at} it was given ${first?.base}`)
}

const isLive = ({ clock }: Pick<Reading, 'clock'>, batch: Batch) => batch.expiresAtMs > clock.now()

async function apply(reading: Reading, follower: Follower, event: Event): Promise<void> {
  const { log, hidden, clock } = reading
  switch (event.kind) {
    case 'append':
      reading.append(event.counts, event.livesHours * hourMs)
      return
    case 'pass':
      clock.step(event.hours * hourMs)
      return
    case 'trim': {
      const due = log.list().filter(batch => !isLive(reading, batch))
      for (const [i, { base }] of due.entries()) if (i % event.share === 0) log.batches.delete(base)
      return
    }
    case 'hide': {
      // A replica lacks some of what is recent, item by item.
      const recent = log.list().slice(-9)
      hidden.clear()
      for (const pick of event.picks) hidden.add(recent[pick]?.base ?? 0)
      return
    }
    case 'tear':
      // While the next walk looks, two batches are put behind what it has passed; it sees the second.
      reading.next('readHeaders', ({ args }) => {
        const { fromOffset, limit } = args[0] as HeaderQuery
        const passed = log.list().filter(({ base }) => base >= fromOffset)
        const [, second] = reading.append([1, 1])
        return [...passed, second].slice(0, limit)
      })
      return
    case 'read':
      await follower.read(event.maxMessages)
      return
    case 'forget': {
      // The reader begins anew where it was, or in the middle of what it had: a consumer that takes a queue over.
      follower.at = Math.max(0, follower.at - event.inBatch)
      return
    }
  }
}
