import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { checkHistory } from './check.ts'
import { createHistory } from './history.ts'
import { mergeHistories } from './merge.ts'
import { brokenIn, judge, queue1, recordScene, type Scene } from './scene.ts'
import { explain } from './violation.ts'

/** Histories that look bad at first sight, and that a queue may have all the same. */
const good: Record<string, (scene: Scene) => void> = {
  'an acknowledgement lost, and the retry told where the first attempt is'(h) {
    const messages = [{ value: 'a' }]
    h.publishInfo('p', h.publishInvoke('p', { messages, publishId: 'x' }))
    h.pull('r', ['a'], 0)
    const retry = h.publishInvoke('p', { messages, publishId: 'x', attempt: 2 })
    h.publishOk('p', retry, [{ value: 'a', queueId: 1, offset: 1 }])
    h.drained('test', { group: 'r' })
  },
  'a publish of unknown outcome that landed'(h) {
    h.publishInfo('p', h.publishInvoke('p', { messages: [{ value: 'a' }] }))
    h.publish('p', ['b'], 2)
    h.pull('r', ['a', 'b'], 0)
    h.drained('test', { group: 'r' })
  },
  'a publish of unknown outcome that did not land'(h) {
    h.publishInvoke('p', { messages: [{ value: 'a' }] })
    h.publish('q', ['b'], 1)
    h.pull('r', ['b'], 0)
    h.drained('test', { group: 'r' })
  },
  'a publish of unknown outcome, perhaps at the offset that nobody has heard of yet'(h) {
    h.publishInfo('p', h.publishInvoke('p', { messages: [{ value: 'a' }] }))
    h.publish('q', ['b'], 2)
  },
  'a message read before its publisher has the acknowledgement'(h) {
    const op = h.publishInvoke('p', { messages: [{ value: 'a' }] })
    h.pull('r', ['a'], 0)
    h.publishOk('p', op, [{ value: 'a', queueId: 1, offset: 1 }])
  },
  'a value that its application published twice, under two publishIds'(h) {
    h.publishFail('p', h.publishInvoke('p', { messages: [{ value: 'b' }] }))
    h.publish('p', ['a'], 1)
    h.publish('p', ['a', 'b'], 2)
    h.pull('r', ['a', 'a', 'b'], 0)
    h.drained('test', { group: 'r' })
  },
  'a value read, and then published again'(h) {
    h.publish('p', ['a'], 1)
    h.pull('r', ['a'], 0)
    h.publish('p', ['a'], 2)
  },
  'a value published twice without an answer, of which the first attempt landed'(h) {
    const messages = [{ value: 'a' }]
    h.publishInfo('p', h.publishInvoke('p', { messages }))
    h.publish('q', ['b'], 2)
    h.publishInfo('p', h.publishInvoke('p', { messages }))
    h.pull('r', ['a', 'b'], 0)
  },
  'a publish over two queues, of which one failed and was sent again'(h) {
    const messages = [{ value: 'a' }, { value: 'b' }]
    const first = h.publishInvoke('p', { messages, publishId: 'x' })
    h.publishOk('p', first, [{ value: 'b', queueId: 2, offset: 1 }])
    h.publishFail('p', first, ['a'])
    const second = h.publishInvoke('p', { messages: [{ value: 'a' }], publishId: 'x', attempt: 2 })
    h.publishOk('p', second, [{ value: 'a', queueId: 1, offset: 1 }])
  },
  'two overlapping sends of one producer, stored the other way round'(h) {
    const a = h.publishInvoke('p', { messages: [{ value: 'a', key: 'k' }] })
    const b = h.publishInvoke('p', { messages: [{ value: 'b', key: 'k' }] })
    h.publishOk('p', a, [{ value: 'a', queueId: 1, offset: 2 }])
    h.publishOk('p', b, [{ value: 'b', queueId: 1, offset: 1 }])
  },
  'a key that moves when queues are added'(h) {
    h.publish('p', ['a'], 1, { key: 'k' })
    h.queuesChanged('admin', 'topic')
    const between = h.publishInvoke('p', { messages: [{ value: 'b', key: 'k' }] })
    h.queuesChanged('admin', 'topic')
    h.publishOk('p', between, [{ value: 'b', queueId: 1, offset: 2 }])
    h.publish('p', ['c'], 1, { key: 'k', queueId: 2 })
  },
  'a reader that sees nothing yet of what another has read'(h) {
    h.publish('p', ['a', 'b'], 1)
    h.pull('r', ['a', 'b'], 0)
    h.pull('stale', [], 0)
    h.pull('stale', ['a', 'b'], 0)
  },
  'messages that retention took before a group came to them'(h) {
    h.publish('p', ['a', 'b', 'c'], 1)
    h.trim('clock', { queueId: 1, upTo: 2 })
    h.pullOk('r', { queueId: 1, from: 0, messages: [{ offset: 3, value: 'c' }], skipped: 2 })
    h.pullOk('s', { queueId: 1, from: 0, messages: [], skipped: 2 })
    h.pull('s', ['c'], 2)
    for (const group of ['r', 's']) h.drained('test', { group })
  },
  'a log whose first offsets were taken before the history began'(h) {
    h.trim('clock', { queueId: 1, upTo: 100 })
    h.publish('p', ['a'], 101)
  },
  'a message that arrives after the group was declared drained'(h) {
    h.drained('test', { group: 'g' })
    h.publish('p', ['a'], 1)
  },
  'a message of a topic that the group does not subscribe to'(h) {
    h.publishOk('p', h.publishInvoke('p', { topic: 'other', messages: [{ value: 'a' }] }), [
      { value: 'a', queueId: 1, offset: 1 },
    ])
    h.drained('test', { group: 'g', topics: ['topic'] })
  },
  'a crash, and the uncommitted messages redelivered to the next owner'(h) {
    h.publish('p', ['a', 'b', 'c'], 1)
    h.gain('c1', 0, 1)
    h.pull('c1', ['a', 'b', 'c'], 0, { group: 'g', offsetVersion: 1 })
    h.handle('c1', 'a', 1)
    h.commit('c1', 1, 1)
    h.handle('c1', 'b', 2)
    h.commitInvoke('c1', { ...queue1, offset: 2, offsetVersion: 1 })
    h.crashed('c1')
    h.gain('c2', 1, 2)
    h.pull('c2', ['b', 'c'], 1, { group: 'g', offsetVersion: 2 })
    h.handle('c2', 'b', 2)
    h.handle('c2', 'c', 3)
    h.commit('c2', 3, 2)
    h.drained('test', { group: 'g' })
  },
  'a clean hand-over: the last commit releases, the next owner goes on'(h) {
    h.publish('p', ['a', 'b'], 1)
    h.gain('c1', 0, 1)
    h.pull('c1', ['a'], 0, { group: 'g', offsetVersion: 1 })
    h.handle('c1', 'a', 1)
    const final = h.commitInvoke('c1', { ...queue1, offset: 1, offsetVersion: 1 })
    h.commitOk('c1', final, { outcome: 'advanced', offsetVersion: 2 })
    h.assignmentLost('c1', { ...queue1, offsetVersion: 1 })
    h.gain('c2', 1, 2)
    h.pull('c2', ['b'], 1, { group: 'g', offsetVersion: 2 })
    h.handle('c2', 'b', 2)
    h.commit('c2', 2, 2)
    h.drained('test', { group: 'g' })
  },
  'an owner that does not know yet that it was replaced: it goes on and is fenced'(h) {
    h.publish('p', ['a', 'b'], 1)
    h.gain('c1', 0, 1)
    h.gain('c2', 0, 2)
    h.pull('c1', ['a', 'b'], 0, { group: 'g', offsetVersion: 1 })
    h.pull('c2', ['a'], 0, { group: 'g', offsetVersion: 2 })
    h.handle('c1', 'a', 1)
    h.handle('c2', 'a', 1)
    h.commit('c2', 1, 2)
    const late = h.commitInvoke('c1', { ...queue1, offset: 1, offsetVersion: 1 })
    h.commitOk('c1', late, { outcome: 'fenced', offsetVersion: 2 })
  },
  'a replaced owner that asks for more than was handled, and is fenced'(h) {
    h.publish('p', ['a', 'b'], 1)
    h.pull('c1', ['a'], 0, { group: 'g', offsetVersion: 1 })
    const wrong = h.commitInvoke('c1', { ...queue1, offset: 2, offsetVersion: 1 })
    h.commitOk('c1', wrong, { outcome: 'fenced', offsetVersion: 2 })
  },
  'an owner that is told the same once more, as it was before its commit'(h) {
    h.publish('p', ['a', 'b'], 1)
    h.gain('c1', 0, 1)
    h.pull('c1', ['a'], 0, { group: 'g', offsetVersion: 1 })
    h.commit('c1', 1, 1)
    h.gain('c1', 0, 1)
    h.pull('c1', ['a', 'b'], 0, { group: 'g', offsetVersion: 1 })
    h.commit('c1', 2, 1)
  },
  'commits of a group of which nothing else is recorded'(h) {
    h.commit('c1', 2, 1)
    h.commit('c1', 5, 1)
  },
  'a commit that was under way when the queue changed hands, and came first'(h) {
    h.publish('p', ['a', 'b'], 1)
    h.gain('c1', 0, 1)
    h.pull('c1', ['a'], 0, { group: 'g', offsetVersion: 1 })
    const slow = h.commitInvoke('c1', { ...queue1, offset: 1, offsetVersion: 1 })
    h.gain('c2', 1, 2)
    h.pull('c2', ['b'], 1, { group: 'g', offsetVersion: 2 })
    h.commit('c2', 2, 2)
    h.commitOk('c1', slow, { outcome: 'advanced' })
  },
  'two overlapping commits answered the other way round'(h) {
    h.publish('p', ['a', 'b'], 1)
    h.pull('c1', ['a', 'b'], 0, { group: 'g', offsetVersion: 1 })
    const two = h.commitInvoke('c1', { ...queue1, offset: 2, offsetVersion: 1 })
    const one = h.commitInvoke('c1', { ...queue1, offset: 1, offsetVersion: 1 })
    h.commitOk('c1', two, { outcome: 'advanced' })
    h.commitOk('c1', one, { outcome: 'advanced' })
  },
  'a failed message that is in the fail topic, and one that is not for this group'(h) {
    h.publish('p', ['a', 'b'], 1)
    h.pull('c1', ['a', 'b'], 0, { group: 'g' })
    h.handle('c1', 'a', 1, 'failed')
    h.handle('c1', 'a', 1, 'moved')
    h.handle('c1', 'b', 2, 'filtered')
    h.commit('c1', 2, 0)
    h.drained('test', { group: 'g' })
  },
  'a reset back, raising offsetVersion'(h) {
    h.publish('p', ['a', 'b'], 1)
    h.gain('c1', 0, 1)
    h.pull('c1', ['a', 'b'], 0, { group: 'g', offsetVersion: 1 })
    h.commit('c1', 2, 1)
    h.resetOk('admin', h.resetInvoke('admin', { ...queue1, offset: 0 }), { offsetVersion: 2 })
    h.gain('c1', 0, 2)
    h.pull('c1', ['a'], 0, { group: 'g', offsetVersion: 2 })
    h.commit('c1', 1, 2)
  },
  'a reset back whose answer is still under way'(h) {
    h.publish('p', ['a', 'b'], 1)
    h.gain('c1', 0, 1)
    h.pull('c1', ['a', 'b'], 0, { group: 'g', offsetVersion: 1 })
    h.resetInvoke('admin', { ...queue1, offset: 0 })
    h.commit('c1', 2, 1)
    h.gain('c1', 0, 2)
  },
  'an owner that is told late where the queue stood before a reset'(h) {
    h.publish('p', ['a', 'b'], 1)
    h.pull('c0', ['a', 'b'], 0, { group: 'g', offsetVersion: 1 })
    h.commit('c0', 2, 1)
    h.resetOk('admin', h.resetInvoke('admin', { ...queue1, offset: 0 }))
    h.gain('c1', 2, 2)
    h.gain('c2', 0, 4)
  },
  'a reset forward over messages that nobody read'(h) {
    h.publish('p', ['a', 'b', 'c'], 1)
    h.resetOk('admin', h.resetInvoke('admin', { ...queue1, offset: 2 }))
    h.gain('c1', 2, 1)
    h.pull('c1', ['c'], 2, { group: 'g', offsetVersion: 1 })
    h.commit('c1', 3, 1)
    h.drained('test', { group: 'g' })
  },
}

suite('the checker accepts', () => {
  for (const [name, tell] of Object.entries(good)) {
    test(name, () => assert.equal(judge(tell), ''))
  }
})

test('violations are explained with their values and events', () => {
  const text = judge(h => {
    h.publish('p', ['a'], 1)
    h.pull('r', ['b'], 0)
  })
  assert.match(text, /^Q02: r was given "b" at queue 1, offset 1, which nobody ever sent\n {4}#2 r pull-ok /m)
  assert.match(text, /^Q03: queue 1, offset 1 is "a" to p, "b" to r$/m)
})

test('sends in the wrong order are one violation: of the producer, or between producers', () => {
  const swapped = (first: string, second: string) => (h: Scene) => {
    h.publishInvoke('x', { messages: [{ value: 'x' }] })
    h.publish(first, ['b'], 2)
    h.publish(second, ['a'], 1)
  }
  assert.deepEqual(brokenIn(swapped('p', 'p')), ['P3/Q05'])
  assert.deepEqual(brokenIn(swapped('p', 'q')), ['Q04'])
})

test('a history that is not numbered from 0 is refused', () => {
  const events = recordScene(h => h.publish('p', ['a'], 1))
  assert.throws(() => checkHistory(events.slice(1)), /event 0 has seq 1/)
})

test('a rule that finds much stops after maxPerRule violations', () => {
  const events = recordScene(h => {
    for (let from = 0; from < 20; from++) h.pull('r', [`ghost${from}`], from)
  })
  assert.equal(checkHistory(events, { maxPerRule: 3 }).filter(({ property }) => property === 'Q02').length, 3)
})

test('histories of several processes are merged by their clock', () => {
  let now = 0
  const [producing, reading] = [createHistory(() => now++), createHistory(() => now++)]
  const op = producing.publishInvoke('p', { messages: [{ value: 'a' }] })
  reading.pullOk('r', { queueId: 1, from: 0, messages: [{ offset: 1, value: 'a' }] })
  producing.publishOk('p', op, [{ value: 'a', queueId: 1, offset: 1 }])
  const merged = mergeHistories([reading.events, producing.events])
  assert.deepEqual(
    merged.map(({ seq, type }) => `${seq} ${type}`),
    ['0 publish-invoke', '1 pull-ok', '2 publish-ok'],
  )
  assert.equal(explain(checkHistory(merged)), '')
})

test('200,000 events are checked in seconds', () => {
  const events = recordScene(h => {
    for (let offset = 1; offset <= 40_000; offset++) {
      h.publish(`p${offset % 16}`, [`v${offset}`], offset, { key: 'k' })
      h.pull('c', [`v${offset}`], offset - 1, { group: 'g' })
      h.handle('c', `v${offset}`, offset)
    }
    h.drained('test', { group: 'g' })
  })
  assert.equal(explain(checkHistory(events)), '')
})
