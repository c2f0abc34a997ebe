import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { brokenIn, type Scene } from './scene.ts'
import type { Property } from './violation.ts'

type Bad = [Property, (scene: Scene) => void]

/** One history for each shape of each violation that producers and readers can see. */
const bad: Record<string, Bad> = {
  'a message lost below what the reader read': [
    'P1/Q01',
    h => {
      h.publish('p', ['a', 'b', 'c'], 1)
      h.pull('r', ['a'], 0)
      h.pull('r', ['c'], 2)
    },
  ],
  'a message lost at the end of a drained history': [
    'P1/Q01',
    h => {
      h.publish('p', ['a', 'b'], 1)
      h.pull('r', ['a'], 0)
      h.drained('test', { group: 'r' })
    },
  ],
  'a whole queue lost to a drained reader': [
    'P1/Q01',
    h => {
      h.publish('p', ['a'], 1)
      h.publish('p', ['b'], 1, { queueId: 2 })
      h.pull('r', ['a'], 0)
      h.drained('test', { group: 'r' })
    },
  ],
  'a message lost although the answer counts it as skipped': [
    'P1/Q01',
    h => {
      h.publish('p', ['a', 'b'], 1)
      h.pullOk('r', { queueId: 1, from: 0, messages: [{ offset: 2, value: 'b' }], skipped: 1 })
    },
  ],
  'a message lost to a reader drained of its topic': [
    'P1/Q01',
    h => {
      h.publish('p', ['a'], 1)
      h.drained('test', { group: 'r', topics: ['topic'] })
    },
  ],
  'a message lost that was acknowledged, and once more after the end': [
    'P1/Q01',
    h => {
      const publish = { messages: [{ value: 'a' }], publishId: 'x' }
      const [first, second] = [h.publishInvoke('p', publish), h.publishInvoke('p', publish)]
      h.publishOk('p', first, [{ value: 'a', queueId: 1, offset: 1 }])
      h.drained('test', { group: 'r' })
      h.publishOk('p', second, [{ value: 'a', queueId: 1, offset: 1 }])
    },
  ],
  'a message lost to one reader of two': [
    'P1/Q01',
    h => {
      h.publish('p', ['a', 'b'], 1)
      h.pull('r', ['a', 'b'], 0)
      h.pull('s', ['b'], 1)
    },
  ],
  'an offset 0': ['P2', h => h.publish('p', ['a'], 0)],
  'an offset that is no whole number': ['P2', h => h.publish('p', ['a'], 1.5)],
  'an offset acknowledged twice': [
    'P2',
    h => {
      h.publish('p', ['a'], 1)
      h.publish('q', ['b'], 1)
    },
  ],
  'a hole between acknowledgements that no publish can fill': [
    'P2',
    h => {
      h.publish('p', ['a'], 1)
      h.publish('p', ['b'], 3)
    },
  ],
  'more holes than publishes of unknown outcome': [
    'P2',
    h => {
      h.publishInfo('q', h.publishInvoke('q', { messages: [{ value: 'x' }] }))
      h.publish('p', ['a'], 2)
      h.publish('p', ['b'], 4)
    },
  ],
  'a hole behind what retention took': [
    'P2',
    h => {
      h.publish('p', ['a', 'b'], 1)
      h.trim('clock', { queueId: 1, upTo: 2 })
      h.publish('p', ['c'], 4)
    },
  ],
  'a queue that does not begin at 1': ['P2', h => h.publish('p', ['a'], 2)],
  'a reader that steps over an offset within a pull': [
    'P2',
    h => {
      h.publishInfo('q', h.publishInvoke('q', { messages: [{ value: 'x' }] }))
      h.publish('p', ['a'], 1)
      h.publish('p', ['b'], 3)
      const messages = [
        { offset: 1, value: 'a' },
        { offset: 3, value: 'b' },
      ]
      h.pullOk('r', { queueId: 1, from: 0, messages })
    },
  ],
  'a reader that steps over an offset at the start of a pull': [
    'P2',
    h => {
      h.publish('p', ['a', 'b'], 1)
      h.pullOk('r', { queueId: 1, from: 0, messages: [{ offset: 2, value: 'b' }] })
    },
  ],
  'an empty pull that skips what retention had not taken': [
    'P2',
    h => {
      h.publish('p', ['a', 'b'], 1)
      h.trim('clock', { queueId: 1, upTo: 1 })
      h.pullOk('r', { queueId: 1, from: 0, messages: [], skipped: 2 })
    },
  ],
  'a skip before retention took the message': [
    'P2',
    h => {
      h.publish('p', ['a', 'b'], 1)
      h.pullOk('r', { queueId: 1, from: 0, messages: [{ offset: 2, value: 'b' }], skipped: 1 })
      h.trim('clock', { queueId: 1, upTo: 1 })
    },
  ],
  'a value read that nobody sent': ['Q02', h => h.pull('r', ['ghost'], 0)],
  'a value read before it was sent': [
    'Q02',
    h => {
      h.pull('r', ['a'], 0)
      h.publish('p', ['a'], 1)
    },
  ],
  'a value read whose publish had failed': [
    'Q02',
    h => {
      h.publishFail('p', h.publishInvoke('p', { messages: [{ value: 'a' }] }))
      h.pull('r', ['a'], 0)
    },
  ],
  'a value read whose publish fails afterwards': [
    'Q02',
    h => {
      const op = h.publishInvoke('p', { messages: [{ value: 'a' }, { value: 'b' }] })
      h.pull('r', ['a'], 0)
      h.publishFail('p', op, ['a'])
    },
  ],
  'a value read between a failure and the retry': [
    'Q02',
    h => {
      const publish = { messages: [{ value: 'a' }], publishId: 'x' }
      h.publishFail('p', h.publishInvoke('p', publish))
      h.pull('r', ['a'], 0)
      const retry = h.publishInvoke('p', { ...publish, attempt: 2 })
      h.publishOk('p', retry, [{ value: 'a', queueId: 1, offset: 1 }])
    },
  ],
  'an acknowledgement of a value that was not in the publish': [
    'Q02',
    h => {
      const op = h.publishInvoke('p', { messages: [{ value: 'a' }] })
      h.publishOk('p', op, [{ value: 'b', queueId: 1, offset: 1 }])
    },
  ],
  'a value handled that nobody sent': ['Q02', h => h.handle('c', 'ghost', 1)],
  'a reader that sees another value than the publisher': [
    'Q03',
    h => {
      h.publish('p', ['a', 'b'], 1)
      h.pull('r', ['b', 'a'], 0)
    },
  ],
  'two readers that see different values': [
    'Q03',
    h => {
      for (const value of ['a', 'b']) h.publishInfo('p', h.publishInvoke('p', { messages: [{ value }] }))
      h.pull('r', ['a'], 0)
      h.pull('s', ['b'], 0)
    },
  ],
  'a handler that gets another value than was pulled': [
    'Q03',
    h => {
      h.publish('p', ['a', 'b'], 1)
      h.pull('c', ['a', 'b'], 0, { group: 'g' })
      h.handle('c', 'b', 1)
    },
  ],
  'a message that turns up behind a reader': [
    'Q04',
    h => {
      h.publish('p', ['a'], 1)
      const slow = h.publishInvoke('p', { messages: [{ value: 'b' }] })
      h.publish('q', ['c'], 3)
      h.pull('r', ['a'], 0)
      h.pullOk('r', { queueId: 1, from: 1, messages: [{ offset: 3, value: 'c' }] })
      h.publishOk('p', slow, [{ value: 'b', queueId: 1, offset: 2 }])
    },
  ],
  'a message sent after a higher offset was acknowledged': [
    'Q04',
    h => {
      h.publishInvoke('x', { messages: [{ value: 'x' }] })
      h.publish('p', ['b'], 2)
      h.publish('q', ['a'], 1)
    },
  ],
  'a message sent after a higher offset was read': [
    'Q04',
    h => {
      const slow = h.publishInvoke('p', { messages: [{ value: 'b' }] })
      h.pull('r', ['b'], 1)
      h.publish('q', ['a'], 1)
      h.publishOk('p', slow, [{ value: 'b', queueId: 1, offset: 2 }])
    },
  ],
  'a producer’s messages the other way round': [
    'P3/Q05',
    h => {
      h.publish('p', ['b'], 2)
      h.publish('p', ['a'], 1)
    },
  ],
  'a batch the other way round': [
    'P3/Q05',
    h => {
      const op = h.publishInvoke('p', { messages: [{ value: 'a' }, { value: 'b' }] })
      h.publishOk('p', op, [
        { value: 'a', queueId: 1, offset: 2 },
        { value: 'b', queueId: 1, offset: 1 },
      ])
    },
  ],
  'a producer’s messages the other way round, of which one is known by reading only': [
    'P3/Q05',
    h => {
      h.publish('p', ['b'], 2)
      h.publishInfo('p', h.publishInvoke('p', { messages: [{ value: 'a' }] }))
      h.pull('r', ['a', 'b'], 0)
    },
  ],
  'a key in two queues': [
    'P3/Q05',
    h => {
      h.publish('p', ['a'], 1, { key: 'k' })
      h.publish('q', ['b'], 1, { key: 'k', queueId: 2 })
    },
  ],
  'a key in two queues after the queues had changed': [
    'P3/Q05',
    h => {
      h.queuesChanged('admin', 'topic')
      h.publish('p', ['a'], 1, { key: 'k' })
      h.publish('p', ['b'], 1, { key: 'k', queueId: 2 })
    },
  ],
  'a retry stored again': [
    'P8',
    h => {
      const publish = { messages: [{ value: 'a' }], publishId: 'x' }
      h.publishInfo('p', h.publishInvoke('p', publish))
      const retry = h.publishInvoke('p', { ...publish, attempt: 2 })
      h.publishOk('p', retry, [{ value: 'a', queueId: 1, offset: 2 }])
      h.pull('r', ['a', 'a'], 0)
    },
  ],
  'a retry stored again in another queue': [
    'P8',
    h => {
      const publish = { messages: [{ value: 'a' }], publishId: 'x' }
      const first = h.publishInvoke('p', publish)
      h.publishOk('p', first, [{ value: 'a', queueId: 1, offset: 1 }])
      const second = h.publishInvoke('p', { ...publish, attempt: 2 })
      h.publishOk('p', second, [{ value: 'a', queueId: 2, offset: 1 }])
    },
  ],
  'a message handled at two offsets': [
    'P8',
    h => {
      h.publishInfo('p', h.publishInvoke('p', { messages: [{ value: 'a' }] }))
      h.handle('c', 'a', 1)
      h.handle('c', 'a', 2)
    },
  ],
  'one publishId acknowledged at two offsets, though another was sent too': [
    'P8',
    h => {
      const publish = { messages: [{ value: 'a' }], publishId: 'x' }
      h.publishInfo('p', h.publishInvoke('p', { ...publish, publishId: 'y' }))
      for (const offset of [1, 2]) {
        h.publishOk('p', h.publishInvoke('p', publish), [{ value: 'a', queueId: 1, offset }])
      }
    },
  ],
  'a value at more offsets than publishIds': [
    'P8',
    h => {
      h.publish('p', ['a'], 1)
      h.publish('p', ['a'], 2)
      h.pull('r', ['a', 'a', 'a'], 0)
    },
  ],
}

suite('the checker catches', () => {
  for (const [name, [property, tell]] of Object.entries(bad)) {
    test(`${name} (${property})`, () => {
      const found = brokenIn(tell)
      assert.ok(found.includes(property), `found ${found.join(', ') || 'nothing'}`)
    })
  }
})
