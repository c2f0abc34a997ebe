import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { brokenIn, queue1, type Scene } from './scene.ts'
import type { Property } from './violation.ts'

type Bad = [Property, (scene: Scene) => void]

const owned = (offsetVersion: number) => ({ group: 'g', offsetVersion })

/** Three messages, and a consumer that was given and handled the first `handled` of them. */
function begin(h: Scene, handled: number) {
  const values = ['a', 'b', 'c']
  h.publish('p', values, 1)
  h.gain('c1', 0, 1)
  h.pull('c1', values, 0, owned(1))
  for (const [index, value] of values.slice(0, handled).entries()) h.handle('c1', value, index + 1)
}

/** One history for each shape of each violation that a group can see. */
const bad: Record<string, Bad> = {
  'a message that a drained group pulled but never finished': [
    'P1/Q01',
    h => {
      begin(h, 2)
      h.drained('test', { group: 'g' })
    },
  ],
  'a message that a drained group only failed to handle': [
    'P1/Q01',
    h => {
      begin(h, 2)
      h.handle('c1', 'c', 3, 'failed')
      h.drained('test', { group: 'g' })
    },
  ],
  'a message lost behind a reset that did not jump it': [
    'P1/Q01',
    h => {
      begin(h, 0)
      h.publish('p', ['d'], 4)
      h.resetOk('admin', h.resetInvoke('admin', { ...queue1, offset: 3 }))
      h.drained('test', { group: 'g' })
    },
  ],
  'a pull that leaves out what came since the one before': [
    'P3/Q05',
    h => {
      h.publish('p', ['a', 'b', 'c'], 1)
      h.pull('c1', ['a'], 0, owned(1))
      h.pull('c1', ['c'], 2, owned(1))
    },
  ],
  'a first pull above the offset that the owner was told': [
    'P3/Q05',
    h => {
      h.publish('p', ['a', 'b'], 1)
      h.gain('c1', 0, 1)
      h.pull('c1', ['b'], 1, owned(1))
    },
  ],
  'a pull that gives a message again': [
    'P3/Q05',
    h => {
      begin(h, 0)
      h.pull('c1', ['c'], 2, owned(1))
    },
  ],
  'a pull that gives what the consumer has said it has': [
    'P3/Q05',
    h => {
      h.publish('p', ['a', 'b'], 1)
      h.pullOk('c1', { queueId: 1, from: 1, messages: [{ offset: 1, value: 'a' }], ...owned(1) })
    },
  ],
  'a pull in the wrong order': [
    'P3/Q05',
    h => {
      h.publish('p', ['a', 'b'], 1)
      const messages = [
        { offset: 2, value: 'b' },
        { offset: 1, value: 'a' },
      ]
      h.pullOk('c1', { queueId: 1, from: 0, messages, ...owned(1) })
    },
  ],
  'a commit that advances to a lower offset': [
    'P4',
    h => {
      begin(h, 3)
      h.commit('c1', 2, 1)
      h.commit('c1', 1, 1)
    },
  ],
  'a commit that advances to the same offset': [
    'P4',
    h => {
      begin(h, 3)
      const [one, two] = [1, 1].map(offset => h.commitInvoke('c1', { ...queue1, offset, offsetVersion: 1 }))
      for (const op of [one, two]) h.commitOk('c1', op ?? 0, { outcome: 'advanced' })
    },
  ],
  'a commit of the next owner that goes back': [
    'P4',
    h => {
      begin(h, 3)
      h.commit('c1', 2, 1)
      h.commit('c2', 1, 2)
    },
  ],
  'a commit of the next owner that goes back, answered before the higher one of the owner before': [
    'P4',
    h => {
      begin(h, 3)
      const slow = h.commitInvoke('c1', { ...queue1, offset: 2, offsetVersion: 1 })
      h.commit('c2', 1, 2)
      h.commitOk('c1', slow, { outcome: 'advanced' })
    },
  ],
  'a new owner told to begin at 0': [
    'P4',
    h => {
      begin(h, 3)
      h.commit('c1', 2, 1)
      h.gain('c2', 0, 2)
    },
  ],
  'a commit that goes back long after a reset': [
    'P4',
    h => {
      begin(h, 3)
      h.resetOk('admin', h.resetInvoke('admin', { ...queue1, offset: 0 }), { offsetVersion: 2 })
      h.commit('c1', 3, 2)
      h.commit('c1', 2, 3)
    },
  ],
  'a commit that goes back long after a reset of unknown offsetVersion': [
    'P4',
    h => {
      begin(h, 3)
      h.resetOk('admin', h.resetInvoke('admin', { ...queue1, offset: 0 }))
      h.commit('c1', 3, 2)
      h.commit('c1', 2, 3)
    },
  ],
  'a commit that goes back behind one that came after the reset, though before its answer': [
    'P4',
    h => {
      begin(h, 3)
      const reset = h.resetInvoke('admin', { ...queue1, offset: 0 })
      h.commit('c1', 3, 2)
      h.resetOk('admin', reset, { offsetVersion: 2 })
      h.commit('c2', 2, 3)
    },
  ],
  'a commit of an older offsetVersion after the next owner was told': [
    'P4',
    h => {
      begin(h, 3)
      h.gain('c2', 0, 2)
      h.commit('c1', 1, 1)
    },
  ],
  'a commit of the old offsetVersion after a reset was answered': [
    'P4',
    h => {
      begin(h, 3)
      h.resetOk('admin', h.resetInvoke('admin', { ...queue1, offset: 0 }), { offsetVersion: 2 })
      h.commit('c1', 1, 1)
    },
  ],
  'a commit of an owner that has released the queue': [
    'P4',
    h => {
      begin(h, 3)
      const final = h.commitInvoke('c1', { ...queue1, offset: 1, offsetVersion: 1 })
      h.commitOk('c1', final, { outcome: 'advanced', offsetVersion: 2 })
      h.commit('c1', 2, 1)
    },
  ],
  'a commit that counts after the same consumer was fenced': [
    'P4',
    h => {
      begin(h, 3)
      const first = h.commitInvoke('c1', { ...queue1, offset: 1, offsetVersion: 1 })
      h.commitOk('c1', first, { outcome: 'fenced', offsetVersion: 2 })
      h.commit('c1', 1, 1)
    },
  ],
  'two consumers that advance under one offsetVersion': [
    'P5/Q06',
    h => {
      begin(h, 3)
      h.commit('c1', 1, 1)
      h.commit('c2', 2, 1)
    },
  ],
  'two consumers that are told one offsetVersion': [
    'P5/Q06',
    h => {
      h.gain('c1', 0, 1)
      h.gain('c2', 0, 1)
    },
  ],
  'a commit under an offsetVersion that was told to another': [
    'P5/Q06',
    h => {
      begin(h, 3)
      h.commit('c2', 1, 1)
    },
  ],
  'a superseded owner that advances again': [
    'P5/Q06',
    h => {
      begin(h, 3)
      h.commit('c1', 1, 1)
      h.commit('c2', 2, 2)
      h.commit('c1', 3, 1)
    },
  ],
  'a consumer that pulls what it gave up': [
    'P5/Q06',
    h => {
      begin(h, 0)
      h.assignmentLost('c1', { ...queue1, offsetVersion: 1 })
      h.pull('c1', [], 3, owned(1))
    },
  ],
  'a consumer that commits what it gave up': [
    'P5/Q06',
    h => {
      begin(h, 3)
      h.assignmentLost('c1', { ...queue1, offsetVersion: 1 })
      h.commit('c1', 3, 1)
    },
  ],
  'a commit past a message that is still running': [
    'Q07',
    h => {
      begin(h, 1)
      h.handleStart('c1', { ...queue1, offset: 2, value: 'b' })
      h.handle('c1', 'c', 3)
      h.commit('c1', 3, 1)
      h.handleEnd('c1', { ...queue1, offset: 2, value: 'b' }, 'ok')
    },
  ],
  'a commit past a message that failed and is in no fail topic': [
    'Q07',
    h => {
      begin(h, 1)
      h.handle('c1', 'b', 2, 'failed')
      h.commit('c1', 2, 1)
    },
  ],
  'a commit of unknown outcome past a message that nobody handled': [
    'Q07',
    h => {
      begin(h, 1)
      h.commitInfo('c1', h.commitInvoke('c1', { ...queue1, offset: 2, offsetVersion: 1 }))
    },
  ],
  'a commit past what the group has pulled, where handling is not recorded': [
    'Q07',
    h => {
      h.publish('p', ['a', 'b'], 1)
      h.pull('c1', ['a'], 0, owned(1))
      h.commit('c1', 2, 1)
    },
  ],
  'an offset told that nobody reached': [
    'Q07',
    h => {
      begin(h, 1)
      h.gain('c2', 2, 2)
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
