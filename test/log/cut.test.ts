import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { cutIntoBatches } from '../../core/log/cut.ts'
import { decodeText } from '../../core/log/encoding.ts'
import { limits } from '../../core/protocol/limits.ts'
import type { BatchMessage } from '../../core/protocol/pull.ts'
import { seededRandom } from '../support/random.ts'

const longest = 200_000
const random = seededRandom(1)
const allNoise = Array.from({ length: 13 * longest }, () => String.fromCharCode(32 + Math.floor(random() * 90))).join(
  '',
)
/** The nth text that does not compress below three quarters of its length, and has nothing in common with the others. */
const noise = (length: number, n: number) => allNoise.slice(n * longest, n * longest + length)
const sizes = fc.array(fc.integer({ min: 0, max: longest }), { minLength: 1, maxLength: 12 })
const messagesOf = (lengths: number[]): BatchMessage[] => lengths.map((length, i) => ({ body: noise(length, i) }))

describe('the cut of a publish into batches', () => {
  test('keeps every message, in order, in batches that follow each other', () => {
    fc.assert(
      fc.property(sizes, lengths => {
        const messages = messagesOf(lengths)
        const cuts = cutIntoBatches(messages, 'fast')
        let from = 0
        for (const cut of cuts) {
          assert.equal(cut.from, from)
          assert.deepEqual(JSON.parse(cut.text), messages.slice(from, from + cut.count))
          assert.equal(decodeText(cut), cut.text)
          from += cut.count
        }
        assert.equal(from, messages.length)
      }),
      { numRuns: 15 },
    )
  })

  test('keeps each batch within the limits of an item and of a text, unless it is a single message', () => {
    fc.assert(
      fc.property(sizes, lengths => {
        for (const cut of cutIntoBatches(messagesOf(lengths), 'fast')) {
          if (cut.count === 1) continue
          assert.ok(cut.bytes.length <= limits.maxBatchBytes)
          assert.ok(cut.text.length <= limits.maxBatchTextBytes)
        }
      }),
      { numRuns: 15 },
    )
  })

  test('makes one batch of what fits into one, and two of what only just does not', () => {
    const half = limits.maxBatchTextBytes / 2
    const bodies = (spare: number) => [1, 2].map(() => ({ body: 'x'.repeat(half - '{"body":""},'.length - spare) }))
    assert.equal(cutIntoBatches(bodies(2), 'fast').length, 1)
    assert.equal(cutIntoBatches(bodies(-1), 'fast').length, 2)
  })

  test('is the same each time for the same messages, so that a retried publish finds its batches', () => {
    const messages = messagesOf([150_000, 90_000, 200_000, 10, 180_000, 190_000, 0, 170_000])
    for (const compression of ['small', 'fast'] as const) {
      const [once, again] = [1, 2].map(() => cutIntoBatches(structuredClone(messages), compression))
      assert.ok((once?.length ?? 0) > 1)
      assert.deepEqual(once, again)
    }
  })

  test('leaves a message that is too large to the caller to refuse', () => {
    const [first, large, last] = cutIntoBatches(
      [{ body: 'a' }, { body: noise(3 * longest, 1) }, { body: 'b' }],
      'small',
    )
    assert.deepEqual([first?.count, large?.count, last?.count], [1, 1, 1])
    assert.ok((large?.bytes.length ?? 0) > limits.maxBatchBytes)
  })
})
