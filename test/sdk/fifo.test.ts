import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createFifo } from '../../sdk/src/fifo.ts'

test('gives items back in the order in which they came, as an array does', () => {
  const command = fc.oneof(
    fc.nat().map(item => ({ item })),
    fc.constant('shift' as const),
    fc.constant('peek' as const),
  )
  fc.assert(
    fc.property(fc.array(command, { maxLength: 200 }), commands => {
      const fifo = createFifo<number>()
      const model: number[] = []
      for (const step of commands) {
        if (step === 'shift') assert.equal(fifo.shift(), model.shift())
        else if (step === 'peek') assert.equal(fifo.peek(), model[0])
        else {
          fifo.push(step.item)
          model.push(step.item)
        }
        assert.equal(fifo.length, model.length)
      }
      fifo.clear()
      assert.deepEqual([fifo.length, fifo.shift(), fifo.peek()], [0, undefined, undefined])
    }),
  )
})

test('stays in order while it grows, shrinks and lets go of spent places', () => {
  const fifo = createFifo<number>()
  let next = 0
  let expected = 0
  for (let round = 0; round < 50; round++) {
    for (let count = 0; count < 200; count++) fifo.push(next++)
    for (let count = 0; count < 190; count++) assert.equal(fifo.shift(), expected++)
  }
  while (fifo.length > 0) assert.equal(fifo.shift(), expected++)
  assert.equal(expected, next)
})
