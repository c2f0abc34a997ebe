import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { createBuffer } from '../../sdk/src/worker/buffer.ts'
import { createGauge } from '../../sdk/src/worker/gauge.ts'

function make(bounds: { maxMessages?: number; maxBytes?: number } = {}) {
  const gauge = createGauge({ maxMessages: 100, maxBytes: 1_000_000, ...bounds })
  return { gauge, buffer: createBuffer({ topicName: 'orders', queueId: 7, gauge }) }
}

const batch = (offset: number, bodies: string[]) => ({ offset, time: 5, msgs: bodies.map(body => ({ body })) })
const fill = (offset: number, count: number) => batch(offset, new Array<string>(count).fill('x'))

suite('the buffer', () => {
  test('gives out whole messages, with empty texts where the publisher gave none', () => {
    const { buffer } = make()
    buffer.add(
      {
        offset: 3,
        time: 5,
        msgs: [{ body: 'a', key: 'k', head: { n: 'v' }, tag: 't', sendIp: '10.0.0.1' }, { body: 'b' }],
      },
      0,
      0,
    )
    const common = { topicName: 'orders', queueId: 7, bizId: '', traceId: '', retryCount: 0, publishedAtMs: 5 }
    assert.deepEqual(buffer.take(10), [
      { ...common, offset: 3, key: 'k', tag: 't', head: { n: 'v' }, body: 'a', sendIp: '10.0.0.1' },
      { ...common, offset: 4, key: undefined, tag: '', head: {}, body: 'b', sendIp: '' },
    ])
  })

  test('wants more until it is full, and then not before it is half empty', () => {
    const { buffer, gauge } = make()
    buffer.add(fill(1, 99), 0, 0)
    assert.equal(gauge.wantsMore, true)
    buffer.add(fill(100, 1), 0, 0)
    assert.equal(gauge.wantsMore, false)
    buffer.take(49)
    assert.equal(gauge.wantsMore, false)
    buffer.take(1)
    assert.equal(gauge.wantsMore, true)
  })

  test('is full as well when its texts are too many', () => {
    const { buffer, gauge } = make({ maxBytes: 1_000 })
    buffer.add(batch(1, ['x'.repeat(500), 'x'.repeat(500)]), 0, 0)
    assert.equal(gauge.wantsMore, false)
    buffer.take(2)
    assert.deepEqual([gauge.wantsMore, gauge.bytes], [true, 0])
  })

  test('gives out no more when the texts have come to what is asked for, and one message at least', () => {
    const { buffer, gauge } = make()
    const texts = { key: 'k'.repeat(100), tag: 't'.repeat(100), bizId: 'b'.repeat(100), traceId: 'i'.repeat(100) }
    buffer.add({ offset: 1, time: 5, msgs: Array(9).fill({ body: 'x'.repeat(500), ...texts }) }, 0, 0)
    // Each of them is 1,000 bytes with what it takes besides.
    assert.equal(buffer.take(9, 1).length, 1)
    assert.equal(buffer.take(9, 2_000).length, 2)
    assert.equal(buffer.take(9, 2_001).length, 3)
    assert.equal(buffer.take(2, 9_000).length, 2)
    assert.equal(buffer.take(9, 9_000).length, 1)
    assert.deepEqual([gauge.messages, gauge.bytes], [0, 0])
  })

  test('a batch that cannot be read leaves it as it was', () => {
    const { buffer, gauge } = make()
    buffer.add(fill(1, 2), 0, 0)
    assert.throws(() => buffer.add({ offset: 3, time: 5, msgs: JSON.parse('[{"body":"a"},null,{}]') }, 0, 0))
    assert.equal(gauge.messages, 2)
    assert.deepEqual(
      buffer.take(10).map(({ offset }) => offset),
      [1, 2],
    )
  })

  test('whatever is added and taken, messages come out once each, in offset order', () => {
    const step = fc.oneof(
      fc.integer({ min: 1, max: 8 }).map(add => ({ add, take: 0 })),
      fc.integer({ min: 1, max: 12 }).map(take => ({ add: 0, take })),
    )
    const scenario = fc.record({ skip: fc.nat({ max: 7 }), steps: fc.array(step, { maxLength: 80 }) })
    fc.assert(
      fc.property(scenario, ({ skip, steps }) => {
        const { buffer, gauge } = make()
        let added = 0
        let taken = 0
        for (const { add, take } of steps) {
          if (add > 0) {
            // A position in the middle of a batch occurs only in the first one.
            const firstIndex = added === 0 ? Math.min(skip, add - 1) : 0
            if (added === 0) taken = firstIndex
            buffer.add(
              batch(
                added + 1,
                Array.from({ length: add }, (_, index) => `${added + index + 1}`),
              ),
              firstIndex,
              0,
            )
            added += add
          } else {
            const got = buffer.take(take)
            assert.equal(got.length, Math.min(take, added - taken))
            for (const message of got) {
              assert.equal(message.offset, ++taken)
              assert.equal(message.body, `${taken}`)
            }
          }
          assert.equal(gauge.messages, added - taken)
          assert.equal(gauge.bytes === 0, gauge.messages === 0)
        }
      }),
    )
  })
})
