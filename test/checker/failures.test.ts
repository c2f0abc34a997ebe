import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Ordering } from './history.ts'
import { brokenIn, queue1, type Scene } from './scene.ts'
import type { Property } from './violation.ts'

const failTopic = 'g_topic_fail'
const owned = { ...queue1, offsetVersion: 1 }
const retried = { group: 'g', queueId: 2, offsetVersion: 1 }

/** A group with two retries works through a queue with these messages; calls of its first consumer begin in order. */
function begin(h: Scene, values: string[], { ordering = 'queue' as Ordering, rules = {} } = {}) {
  const ofTopic = { group: 'g', topic: 'topic', failTopic, hasFailTopic: true }
  h.retryRules('admin', { ...ofTopic, retryCount: 2, retryInPlace: false, atOnce: 2, atOnceRetried: 1, ...rules })
  h.publish('p', values, 1, { key: 'k' })
  h.assignmentGained('c1', { ...owned, offset: 0, ordering })
  h.pull('c1', values, 0, owned)
}

const start = (h: Scene, value: string, offset: number, queue = queue1) =>
  h.handleStart('c1', { ...queue, offset, value })
const end = (h: Scene, value: string, offset: number, outcome: 'ok' | 'failed', queue = queue1) =>
  h.handleEnd('c1', { ...queue, offset, value }, outcome)

function handle(h: Scene, value: string, offset: number, outcome: 'ok' | 'failed', queue = queue1) {
  start(h, value, offset, queue)
  end(h, value, offset, outcome, queue)
}

/** A copy is sent to the fail topic. */
function send(h: Scene, value: string, offset: number, retryCount: number, from = owned, publishId?: string): number {
  const messages = [{ value, failureOf: { ...from, offset, retryCount } }]
  return h.publishInvoke('c1', { topic: failTopic, messages, ...(publishId !== undefined && { publishId }) })
}

/** The one message fails, is stored, fails twice more, and lies there as a dead letter. */
function retryToTheEnd(h: Scene) {
  begin(h, ['a'])
  handle(h, 'a', 1, 'failed')
  h.publishStored('c1', send(h, 'a#1', 1, 1))
  h.commit('c1', 1, 1)
  h.assignmentGained('c1', { ...retried, offset: 0, ordering: 'queue' })
  h.pullOk('c1', { ...retried, from: 0, messages: [{ offset: 1, value: 'a#1' }] })
  handle(h, 'a#1', 1, 'failed', retried)
  h.publishStored('c1', send(h, 'a#2', 1, 2, retried))
  h.pullOk('c1', { ...retried, from: 1, messages: [{ offset: 2, value: 'a#2' }] })
  handle(h, 'a#2', 2, 'failed', retried)
  h.publishStored('c1', send(h, 'a#3', 2, 3, retried))
  h.pullOk('c1', { ...retried, from: 2, messages: [{ offset: 3, value: 'a#3' }] })
}

function commitRetried(h: Scene, offset: number) {
  h.commitOk('c1', h.commitInvoke('c1', { ...retried, offset }), { outcome: 'advanced' })
}

function drain(h: Scene, copies: string[]) {
  h.pull('auditor', ['a'], 0)
  const messages = copies.map((value, index) => ({ offset: index + 1, value }))
  h.pullOk('auditor', { queueId: 2, from: 0, messages })
  h.drained('auditor', { group: 'auditor' })
}

const good: Record<string, (h: Scene) => void> = {
  'a message that fails to the end, and its dead letter is passed'(h) {
    retryToTheEnd(h)
    commitRetried(h, 3)
    h.drained('test', { group: 'g' })
    drain(h, ['a#1', 'a#2', 'a#3'])
  },
  'a failure whose answer was lost, stored by the retry'(h) {
    begin(h, ['a'])
    handle(h, 'a', 1, 'failed')
    h.publishInfo('c1', send(h, 'a#1', 1, 1, owned, 'x'))
    h.publishStored('c1', send(h, 'a#1', 1, 1, owned, 'x'))
    drain(h, ['a#1'])
  },
  'a message that two owners failed to handle, stored by both'(h) {
    begin(h, ['a'])
    handle(h, 'a', 1, 'failed')
    h.publishStored('c1', send(h, 'a#1', 1, 1))
    h.assignmentGained('c1', { ...queue1, offset: 0, offsetVersion: 2 })
    handle(h, 'a', 1, 'failed')
    h.publishStored('c1', send(h, 'a#1', 1, 1, { ...queue1, offsetVersion: 2 }))
    drain(h, ['a#1', 'a#1'])
  },
  'two copies of one message that fail in one call'(h) {
    begin(h, ['a'], { rules: { atOnceRetried: 2 } })
    handle(h, 'a', 1, 'failed')
    h.publishStored('c1', send(h, 'a#1', 1, 1))
    h.assignmentGained('c1', { ...queue1, offset: 0, offsetVersion: 2 })
    handle(h, 'a', 1, 'failed')
    h.publishStored('c1', send(h, 'a#1', 1, 1, { ...queue1, offsetVersion: 2 }))
    h.assignmentGained('c1', { ...retried, offset: 0 })
    for (const offset of [1, 2]) handle(h, 'a#1', offset, 'failed', retried)
    const messages = [1, 2].map(offset => ({ value: 'a#2', failureOf: { ...retried, offset, retryCount: 2 } }))
    h.publishStored('c1', h.publishInvoke('c1', { topic: failTopic, messages }))
    drain(h, ['a#1', 'a#1', 'a#2', 'a#2'])
  },
  'a message that is repeated in place, and then dead'(h) {
    begin(h, ['a'], { rules: { retryInPlace: true } })
    for (const _ of [1, 2, 3]) handle(h, 'a', 1, 'failed')
    h.publishStored('c1', send(h, 'a#3', 1, 3))
    h.commit('c1', 1, 1)
    drain(h, ['a#3'])
  },
  'a message that is suspected goes to the fail topic, though its consumer was not handed it'(h) {
    begin(h, ['a'])
    h.suspected('c1', { ...queue1, offset: 1 })
    h.publishStored('c1', send(h, 'a#1', 1, 1))
    h.commit('c1', 1, 1)
    drain(h, ['a#1'])
  },
  'a key whose next message begins when the fail topic has the one before'(h) {
    begin(h, ['a', 'b'], { ordering: 'key' })
    handle(h, 'a', 1, 'failed')
    h.publishStored('c1', send(h, 'a#1', 1, 1))
    start(h, 'b', 2)
  },
}

const bad: Record<string, [Property, (h: Scene) => void]> = {
  'a commit past a failure whose publish was not answered': [
    'Q07',
    h => {
      begin(h, ['a'])
      handle(h, 'a', 1, 'failed')
      h.publishInfo('c1', send(h, 'a#1', 1, 1))
      h.commit('c1', 1, 1)
    },
  ],
  'a commit past a retry that nobody handled': [
    'Q07',
    h => {
      begin(h, ['a'])
      handle(h, 'a', 1, 'failed')
      h.publishStored('c1', send(h, 'a#1', 1, 1))
      h.pullOk('c1', { ...retried, from: 0, messages: [{ offset: 1, value: 'a#1' }] })
      commitRetried(h, 1)
    },
  ],
  'another message than the one that is suspected': [
    'P7/Q10',
    h => {
      begin(h, ['a', 'b'])
      h.suspected('c1', { ...queue1, offset: 2 })
      h.publishStored('c1', send(h, 'a#1', 1, 1))
    },
  ],
  'a failure that was stored, as was said, and is not there': [
    'P7/Q10',
    h => {
      begin(h, ['a'])
      handle(h, 'a', 1, 'failed')
      h.publishStored('c1', send(h, 'a#1', 1, 1))
      drain(h, [])
    },
  ],
  'a failure that was stored and that its drained group was never given': [
    'P1/Q01',
    h => {
      begin(h, ['a'])
      handle(h, 'a', 1, 'failed')
      h.publishStored('c1', send(h, 'a#1', 1, 1))
      drain(h, ['a#1'])
      h.drained('test', { group: 'g' })
    },
  ],
  'a failure that was sent again and is there twice': [
    'P8',
    h => {
      begin(h, ['a'])
      handle(h, 'a', 1, 'failed')
      h.publishInfo('c1', send(h, 'a#1', 1, 1, owned, 'x'))
      h.publishStored('c1', send(h, 'a#1', 1, 1, owned, 'x'))
      drain(h, ['a#1', 'a#1'])
    },
  ],
  'a copy in a fail topic that nobody sent there': [
    'Q02',
    h => {
      begin(h, ['a'])
      drain(h, ['a#1'])
    },
  ],
  'a dead letter that is handled': [
    'P7/Q10',
    h => {
      retryToTheEnd(h)
      handle(h, 'a#3', 3, 'ok', retried)
    },
  ],
  'a message that is handled twice though the fail topic takes it': [
    'P7/Q10',
    h => {
      begin(h, ['a'])
      for (const _ of [1, 2]) handle(h, 'a', 1, 'failed')
    },
  ],
  'a message that is repeated in place too often': [
    'P7/Q10',
    h => {
      begin(h, ['a'], { rules: { retryInPlace: true } })
      for (const _ of [1, 2, 3, 4]) handle(h, 'a', 1, 'failed')
    },
  ],
  'a failure that is not counted': [
    'P7/Q10',
    h => {
      begin(h, ['a'])
      handle(h, 'a', 1, 'failed')
      send(h, 'a#0', 1, 0)
    },
  ],
  'a message that goes to the fail topic though it was handled': [
    'P7/Q10',
    h => {
      begin(h, ['a'])
      handle(h, 'a', 1, 'ok')
      send(h, 'a#1', 1, 1)
    },
  ],
  'a failure that is stored for who has lost the queue': [
    'P4',
    h => {
      begin(h, ['a'])
      handle(h, 'a', 1, 'failed')
      h.assignmentGained('c2', { ...queue1, offset: 0, offsetVersion: 2 })
      h.publishStored('c1', send(h, 'a#1', 1, 1))
    },
  ],
  'a key of which two messages run at once': [
    'P3/Q05',
    h => {
      begin(h, ['a', 'b'], { ordering: 'key' })
      start(h, 'a', 1)
      start(h, 'b', 2)
    },
  ],
  'a key that goes on before the fail topic has its failure': [
    'P3/Q05',
    h => {
      begin(h, ['a', 'b'], { ordering: 'key' })
      handle(h, 'a', 1, 'failed')
      send(h, 'a#1', 1, 1)
      start(h, 'b', 2)
    },
  ],
  'calls that begin in another order than the queue': [
    'P3/Q05',
    h => {
      begin(h, ['a', 'b'])
      start(h, 'b', 2)
      start(h, 'a', 1)
    },
  ],
  'a message that is handled though it is not for the group': [
    'Q18',
    h => {
      begin(h, ['a'])
      h.handleEnd('c1', { ...queue1, offset: 1, value: 'a' }, 'filtered')
      start(h, 'a', 1)
    },
  ],
  'more messages in hand than the settings let be': [
    'P3/Q05',
    h => {
      begin(h, ['a', 'b', 'c'])
      for (const [index, value] of ['a', 'b', 'c'].entries()) start(h, value, index + 1)
    },
  ],
}

suite('the checker bears', () => {
  for (const [name, tell] of Object.entries(good)) {
    test(name, () => assert.deepEqual(brokenIn(tell), []))
  }
})

suite('the checker catches', () => {
  for (const [name, [property, tell]] of Object.entries(bad)) {
    test(`${name} (${property})`, () => {
      const found = brokenIn(tell)
      assert.ok(found.includes(property), `found ${found.join(', ') || 'nothing'}`)
    })
  }
})
