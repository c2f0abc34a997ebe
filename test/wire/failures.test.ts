import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { limits } from '../../core/protocol/limits.ts'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import { openSqliteStore } from '../../store/sqlite/open.ts'
import { scriptStore } from '../core/scripted-store.ts'
import { viewTopic } from './operator.ts'
import { assignment, base, consume, createGroup, createTopic, join, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
let consumerId: number
let own: AssignedQueue
let failQueue: AssignedQueue
beforeEach(async () => {
  service = openService()
  consumerId = (await consume(service)).consumerId
  const { queues, failQueues } = await assignment(service, consumerId)
  assert.ok(queues[0] && failQueues[0])
  own = queues[0]
  failQueue = failQueues[0]
})
afterEach(() => service.close())

const failName = 'g1_t1_fail'
const failMsg = { topicName: failName, msgs: [{ id: 1, body: 'bad', retryCount: 1 }] }
const report = (fields: object, to = service) =>
  to.call('publishAndUpdateResultFailMsg', { ...base, queueId: own.queueId, failMsg, ...fields })
/** As the SDK says under which version it has the queue. */
const named = ({ consumerGroupName, queueOffsetId, offsetVersion, queueId }: AssignedQueue) => {
  return { consumerId, consumerGroupName, queueOffsetId, offsetVersion, queueId }
}

/** What the fail topic holds. */
async function stored(of = service) {
  const found = []
  for (const { queueId } of (await viewTopic(of, failName)).queues) {
    const request = { ...base, queueId, offsetStart: 0, offsetEnd: 900, topicName: failName, consumerGroupName: 'g1' }
    found.push(...((await of.call('pullData', request)).msgs ?? []))
  }
  return found
}

describe('failures', () => {
  test('are stored with all that a message has, and are handed out to the same group', async () => {
    const message = { tag: 'tag', bizId: 'b', head: { k: 'v' }, body: 'bad', traceId: 'trace', retryCount: 1 }
    const { suc } = await report({ failMsg: { topicName: failName, msgs: [{ id: 7, key: 'k', ...message }] } })
    assert.equal(suc, true)
    const [found] = await stored()
    assert.partialDeepStrictEqual(found, message)
    const { failQueues } = await assignment(service, consumerId)
    assert.deepEqual([failQueues.length, failQueues[0]?.originTopicName], [2, 't1'])
  })

  for (const token of [undefined, null, '', 'wrong', 'tok']) {
    test(`need no token of the topic: ${JSON.stringify(token)}`, async () => {
      assert.equal((await report({ failMsg: { ...failMsg, ...(token !== undefined && { token }) } })).suc, true)
      assert.equal((await stored()).length, 1)
    })
  }

  test('of a fail queue go to the same fail topic, and to no other', async () => {
    const again = { ...failMsg, msgs: [{ id: 1, body: 'bad', retryCount: 2 }] }
    assert.equal((await report({ queueId: failQueue.queueId, failMsg: again })).suc, true)
    assert.equal((await report({ ...named(failQueue), failMsg: again })).suc, true)
    assert.deepEqual(
      (await stored()).map(message => message.retryCount),
      [2, 2],
    )
    assert.deepEqual((await service.call('listTopics')).failTopics, [failName])
  })

  test('that are sent again with their publishId are stored once, whichever answer was lost', async () => {
    const scripted = scriptStore(openSqliteStore(':memory:'))
    const flaky = openService({ store: scripted.store })
    await consume(flaky)
    const msgs = [failMsg.msgs[0], { body: 'other', retryCount: 1, key: 'k' }]
    const attempt = (n: number) =>
      report({ failMsg: { topicName: failName, msgs, publishId: 'p-1', attempt: n, attemptAgeMs: n * 10 } }, flaky)
    assert.equal((await attempt(1)).suc, true)
    for (const n of [2, 3]) assert.equal((await attempt(n)).suc, true)
    assert.equal((await stored(flaky)).length, 2)
    await flaky.close()
  })

  test('are not answered with success before they are durable', async () => {
    const scripted = scriptStore(openSqliteStore(':memory:'))
    const flaky = openService({ store: scripted.store })
    await consume(flaky)
    scripted.next('appendBatch', ...Array.from({ length: 1_000 }, () => 'lost request' as const))
    const { suc } = await flaky.pass(report({}, flaky))
    assert.equal(suc, false)
    await flaky.close()
  })

  test('of a message that was large when it was published are taken, whatever little is added', async () => {
    const body = 'ä'.repeat(limits.maxBodyBytes / 2)
    const head = Object.fromEntries(Array.from({ length: limits.maxHeadKeys }, (_, i) => [`k${i}`, 'v'.repeat(200)]))
    const [tag, bizId, traceId] = ['t'.repeat(1000), 'b'.repeat(200), 'x'.repeat(200)]
    const message = { body, head, tag, bizId, traceId, key: 'k'.repeat(200) }
    const published = await service.call('publish', { ...base, topicName: 't1', msgs: [message] })
    assert.equal(published.suc, true, published.msg)
    const more = { ...message, head: { ...head, attempts: 'y'.repeat(2_000) }, retryCount: 100 }
    assert.equal((await report({ failMsg: { topicName: failName, msgs: [more] } })).suc, true)
    assert.equal((await stored())[0]?.body, body)
  })

  for (const [what, msgs, msg] of [
    [
      'so many that no publish may have them',
      Array.from({ length: 1001 }, () => ({ body: 'bad', retryCount: 1 })),
      'a publish of 1001 messages; at most 1000 are accepted',
    ],
    [
      'longer than any message may be',
      [{ body: 'ok' }, { body: 'x'.repeat(limits.maxBodyBytes + 1) }],
      'message 1: its body has 262145 bytes; at most 262144 are accepted',
    ],
  ] as const) {
    test(`are refused with the numbers where they are ${what}, and none is stored`, async () => {
      const answer = await report({ failMsg: { topicName: failName, msgs } })
      assert.deepEqual([answer.suc, answer.msg], [false, msg])
      assert.equal((await stored()).length, 0)
    })
  }

  test('may name a queue of the fail topic that their message came from: they go where there is room', async () => {
    const msgs = [{ body: 'bad', retryCount: 1, partitionInfo: { queueId: 4711, strictMode: 1 } }]
    assert.equal((await report({ failMsg: { topicName: failName, msgs } })).suc, true)
  })

  test('are none where only successes are told, which a commit says as well', async () => {
    for (const fields of [{ ids: [1, 2] }, { ids: null }, {}]) {
      const request = { ...base, queueId: failQueue.queueId, ...fields }
      assert.deepEqual((await service.call('publishAndUpdateResultFailMsg', request)).suc, true)
    }
    assert.deepEqual(await stored(), [])
  })
})

describe('failures are refused', () => {
  const nothing = { ...failMsg, msgs: [] }
  const refusals: [string, object, string][] = [
    ['that are none', { failMsg: nothing }, 'topic_g1_t1_fail_msg_is_null!'],
    [
      'that go to a topic that is not there',
      { failMsg: { ...failMsg, topicName: 'g1_t2_fail' } },
      'topic_g1_t2_fail_is_not_exist!',
    ],
    [
      'that go to no fail topic',
      { failMsg: { ...failMsg, topicName: 't1' } },
      'topic_t1 is not where failures of queueId_1 go',
    ],
    ['of a queue of another topic', { queueId: 99 }, 'topic_g1_t1_fail is not where failures of queueId_99 go'],
    ['of no queue', { queueId: undefined }, 'topic_g1_t1_fail is not where failures of queueId_undefined go'],
    ['of another group', { consumerGroupName: 'g2' }, 'topic_g1_t1_fail is not where failures of queueId_1 go'],
  ]
  for (const [what, fields, msg] of refusals) {
    test(`${what}: ${msg}`, async () => {
      const answer = await report(fields)
      assert.deepEqual([answer.suc, answer.msg, answer.fenced], [false, msg, undefined])
      assert.deepEqual(await stored(), [])
    })
  }

  test('of another topic of the same group', async () => {
    await createTopic(service, 't2')
    await service.call('subscribe', {}, { groupName: 'g1', topicName: 't2' })
    const other = (await viewTopic(service, 't2')).queues[0]?.queueId
    assert.equal((await report({ queueId: other })).suc, false)
    assert.equal((await report({ ...named(own), failMsg: { ...failMsg, topicName: 'g1_t2_fail' } })).suc, false)
  })

  test('of one whose queue has gone to another consumer, which says that it is fenced', async () => {
    await publish(service, ['bad'])
    await service.call('deRegister', { ...base, id: consumerId })
    const next = await join(service, 'g1', ['t1'], 'next')
    const answer = await report(named(own))
    assert.deepEqual([answer.suc, answer.fenced], [false, true])
    assert.deepEqual(await stored(), [])
    const [present] = (await assignment(service, next)).queues
    assert.ok(present)
    assert.equal((await report({ ...named(present), consumerId: next })).suc, true)
    assert.equal((await report({ ...named(present), consumerId: next + 1 })).fenced, true)
  })

  test('of one whose offset was reset, or whose subscription has ended', async () => {
    await publish(service, ['bad'])
    await service.call('resetOffsets', { of: 'all', to: 'end' }, { groupName: 'g1' })
    assert.equal((await report(named(own))).fenced, true)
    const [fresh] = (await assignment(service, consumerId)).queues
    assert.ok(fresh)
    assert.equal((await report(named(fresh))).suc, true)
    await service.call('unsubscribe', undefined, { groupName: 'g1', topicName: 't1' })
    assert.equal((await report(named(fresh))).fenced, true)
  })

  test('but not of an owner that is leaving, and finishes', async () => {
    await createTopic(service, 't3', 2)
    await createGroup(service, 'g3', ['t3'])
    const first = await join(service, 'g3', ['t3'], 'first')
    const { queues } = await assignment(service, first, 'g3')
    await join(service, 'g3', ['t3'], 'second')
    const msg = { ...failMsg, topicName: 'g3_t3_fail' }
    for (const queue of queues) {
      assert.equal((await report({ ...named(queue), consumerId: first, failMsg: msg })).suc, true)
    }
  })
})

describe('a fail topic', () => {
  test('takes no publishes: it is for failures of its group', async () => {
    const { suc, msg } = await service.call('publish', { ...base, topicName: failName, msgs: [{ body: 'x' }] })
    assert.deepEqual([suc, msg], [false, 'topic_g1_t1_fail takes failures of its group only'])
    assert.deepEqual(await stored(), [])
  })
})

describe('a pull', () => {
  const pulls = (queue: AssignedQueue, fields: object = { maxBytes: 1_000 }) =>
    service.call('pullData', { ...base, ...named(queue), topicName: queue.topicName, offsetStart: 0, ...fields })

  test('by size tells the time, by which delays are reckoned', async () => {
    assert.equal((await pulls(own)).nowMs, service.clock.now())
    service.clock.advance(1_234)
    assert.equal((await pulls(own)).nowMs, service.clock.now())
    assert.ok(!('nowMs' in (await pulls(own, { offsetEnd: 10 }))))
  })

  test('of one whose queue is known to have gone to another consumer is refused as fenced', async () => {
    await publish(service, ['a'])
    assert.equal((await pulls(own)).batches?.length, 1)
    await service.call('deRegister', { ...base, id: consumerId })
    const next = await join(service, 'g1', ['t1'], 'next')
    const [present] = (await assignment(service, next)).queues
    assert.ok(present)
    const { suc, fenced, batches } = await pulls(own)
    assert.deepEqual([suc, fenced, batches], [false, true, undefined])
    assert.equal((await pulls(present)).batches?.length, 1)
    // Who does not say what it has is not asked.
    assert.equal((await pulls({ ...own, offsetVersion: undefined as never })).suc, true)
  })

  test('costs no read for that', async () => {
    const scripted = scriptStore(openSqliteStore(':memory:'))
    const counted = openService({ store: scripted.store })
    const member = (await consume(counted)).consumerId
    const { queues } = await assignment(counted, member)
    const [queue] = queues
    assert.ok(queue)
    const request = { ...base, ...named(queue), topicName: 't1', offsetStart: 0, maxBytes: 1_000 }
    await counted.call('pullData', request)
    const before = scripted.calls.length
    await counted.call('pullData', request)
    assert.deepEqual(
      scripted.calls.slice(before).filter(call => !['readBatches', 'readBatchAt'].includes(call.operation)),
      [],
    )
    await counted.close()
  })
})
