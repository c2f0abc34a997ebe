import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type Compression, decodeText, encodeText, parseMessages } from '../../core/log/encoding.ts'

const compressions: Compression[] = ['small', 'fast']
/** Any UTF-16 text, also with halves of characters, as JavaScript strings may be. */
const anyText = fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map(unit => String.fromCharCode(unit)) })
const noise = (length: number) =>
  Array.from({ length }, (_, i) => String.fromCharCode(33 + ((i * i * 7919 + i * 104_729) % 94))).join('')

describe('the encoding of a batch', () => {
  test('gives back any messages as they were', () => {
    const message = fc.record(
      {
        body: anyText,
        tag: anyText,
        bizId: anyText,
        traceId: anyText,
        key: anyText,
        head: fc.dictionary(anyText, anyText),
        retryCount: fc.nat(),
      },
      { requiredKeys: ['body'] },
    )
    fc.assert(
      fc.property(fc.array(message, { minLength: 1 }), fc.constantFrom(...compressions), (messages, compression) => {
        const text = JSON.stringify(messages)
        const decoded = decodeText(encodeText(text, compression))
        assert.equal(decoded, text)
        assert.deepEqual(parseMessages(decoded), JSON.parse(text))
      }),
    )
  })

  test('gives back texts of every length around the size from which they are compressed', () => {
    for (const compression of compressions) {
      for (let length = 1_000; length < 1_050; length++) {
        for (const body of ['x'.repeat(length), noise(length), '漢'.repeat(length / 3)]) {
          const text = JSON.stringify([{ body }])
          assert.equal(decodeText(encodeText(text, compression)), text)
        }
      }
    }
  })

  test('keeps texts below 1 KB of UTF-8 as they are, and compresses from there', () => {
    const codecOf = (text: string) => compressions.map(compression => encodeText(text, compression).codec)
    assert.deepEqual(codecOf('x'.repeat(1_023)), [0, 0])
    assert.deepEqual(codecOf('x'.repeat(1_024)), [2, 1])
    assert.deepEqual(codecOf('漢'.repeat(341)), [0, 0])
    assert.deepEqual(codecOf('漢'.repeat(342)), [2, 1])
  })

  test('is never longer than the text', () => {
    let state = 1
    const random = Array.from({ length: 2_000 }, () => {
      state = (state * 48_271) % 2_147_483_647
      return String.fromCharCode(0x4e00 + (state % 0x4000))
    }).join('')
    for (const text of ['x'.repeat(5_000), noise(5_000), random]) {
      for (const compression of compressions) {
        const { codec, bytes } = encodeText(text, compression)
        assert.ok(bytes.length <= Buffer.byteLength(text))
        assert.equal(decodeText({ codec, bytes }), text)
      }
    }
  })

  test('reads bytes that are a part of a larger buffer, as a store may return them', () => {
    for (const compression of compressions) {
      for (const text of ['short', 'x'.repeat(3_000)]) {
        const { codec, bytes } = encodeText(text, compression)
        const larger = new Uint8Array(bytes.length + 20).fill(7)
        larger.set(bytes, 10)
        assert.equal(decodeText({ codec, bytes: larger.subarray(10, 10 + bytes.length) }), text)
      }
    }
  })

  test('refuses damaged bytes rather than give back something else or fill the memory', () => {
    const bomb = encodeText('x'.repeat(17 * 1024 * 1024), 'small')
    assert.throws(() => decodeText(bomb))
    for (const compression of compressions) {
      const { codec, bytes } = encodeText('x'.repeat(3_000), compression)
      assert.throws(() => decodeText({ codec, bytes: bytes.subarray(0, bytes.length - 3) }))
    }
  })
})
