import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { addQueues as addQueuesIn } from '../../core/admin/queues.ts'
import { publish as publishIn } from '../../core/client/publish.ts'
import { createContainer } from '../log/containers.ts'
import { addQueues, setReadOnly, viewTopic } from './operator.ts'
import { base, createTopic, pull } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(() => {
  service = openService()
})
afterEach(() => service.close())

const publish = (request: object) => service.call('publish', { ...base, topicName: 't1', publishId: 'p-1', ...request })

/** What is in all queues of the topic. */
async function stored(): Promise<string[]> {
  const bodies: string[] = []
  for (const { queueId } of (await viewTopic(service, 't1')).queues) {
    bodies.push(...(await pull(service, queueId, 0, 1000)).map(message => message.body))
  }
  return bodies.sort()
}

/** How many messages there are in all queues of the topic. */
const count = async () =>
  (await viewTopic(service, 't1')).queues.reduce((sum, { nextOffset }) => sum + nextOffset - 1, 0)

const letters = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
const keyed = letters.map(letter => ({ body: `of ${letter}`, key: letter }))
const bodies = keyed.map(({ body }) => body)

describe('a publish that is sent again is stored once, and answered with where it is', () => {
  test('though queues were added between its attempts', async () => {
    await createTopic(service, 't1')
    const first = await publish({ msgs: keyed, attempt: 1 })
    await addQueues(service, 3)
    const second = await publish({ msgs: keyed, attempt: 2, attemptAgeMs: 10 })
    assert.deepEqual([second.suc, second.offsets, await stored()], [true, first.offsets, bodies])
  })

  test('though the queue that its keys went to was made read-only', async () => {
    const [former = 0] = await createTopic(service, 't1', 2)
    const before = await Promise.all(keyed.map((message, i) => publish({ msgs: [message], publishId: `p-${i}` })))
    await setReadOnly(service, former)
    const after = await Promise.all(
      keyed.map((message, i) => publish({ msgs: [message], publishId: `p-${i}`, attempt: 2, attemptAgeMs: 10 })),
    )
    assert.deepEqual(
      after.map(({ offsets }) => offsets),
      before.map(({ offsets }) => offsets),
    )
    assert.deepEqual(await stored(), bodies)
  })

  test('though it is cut into other parts, and has messages without a key and some that are the same', async () => {
    await createTopic(service, 't1', 2)
    const msgs = [...keyed, { body: 'free' }, { body: 'same', key: 'a' }, { body: 'free' }, { body: 'same', key: 'a' }]
    await publish({ msgs, attempt: 1 })
    await addQueues(service, 3)
    const { suc } = await publish({ msgs, attempt: 2, attemptAgeMs: 10 })
    assert.deepEqual([suc, await stored()], [true, msgs.map(({ body }) => body).sort()])
  })

  test('though it did not fit into one batch', async () => {
    await createTopic(service, 't1', 2)
    const msgs = Array.from({ length: 12 }, (_, i) => ({ body: `${i}`.padEnd(200_000, '.'), key: 'a' }))
    await publish({ msgs, attempt: 1 })
    await addQueues(service, 3)
    const { suc } = await publish({ msgs, attempt: 2, attemptAgeMs: 10 })
    assert.deepEqual([suc, await count()], [true, 12])
  })

  test('though its earlier attempt has stored only some of it, and this one comes from another address', async () => {
    const [first = 0, second = 0] = await createTopic(service, 't1', 2)
    const { appendBatch } = service.core.store
    service.core.store.appendBatch = async batch =>
      batch.queueId === second ? { outcome: 'throttled' } : appendBatch(batch)
    const attempted = await service.pass(publish({ msgs: keyed, attempt: 1 }))
    const kept = attempted.offsets?.filter(({ queueId }) => queueId === first)
    assert.ok(kept?.length && !attempted.suc)
    service.core.store.appendBatch = appendBatch
    await addQueues(service, 3)
    const again = await publish({ msgs: keyed, attempt: 2, attemptAgeMs: 10_000, clientIp: '10.9.9.9' })
    assert.deepEqual([again.suc, await stored()], [true, bodies])
    const third = await publish({ msgs: keyed, attempt: 3, attemptAgeMs: 10_000 })
    assert.deepEqual([third.suc, await stored()], [true, bodies])
  })

  test('though this container has not heard of the queues that the earlier attempt has seen', async () => {
    await createTopic(service, 't1')
    await publish({ msgs: [{ body: 'warm', key: 'a' }], publishId: 'p-0' })
    const another = createContainer(service.core.store, { clock: service.clock })
    await addQueuesIn(another, 't1', { count: 3 })
    await publishIn(another, { topicName: 't1', publishId: 'p-1', msgs: keyed, attempt: 1 })
    const { suc } = await publish({ msgs: keyed, attempt: 2, attemptAgeMs: 10 })
    assert.deepEqual([suc, await count()], [true, keyed.length + 1])
  })
})

describe('a publishId that was used for other messages', () => {
  test('is refused where they are more or fewer: nothing is stored, and nothing acknowledged', async () => {
    await createTopic(service, 't1')
    await publish({ msgs: [{ body: 'a' }] })
    const { suc, msg, sleepTime, offsets } = await publish({ msgs: [{ body: 'b' }, { body: 'c' }], attempt: 2 })
    assert.deepEqual([suc, msg, sleepTime], [false, 'publishId p-1 was used for other messages', 0])
    assert.deepEqual(offsets, [{ first: 0, count: 2, error: msg }])
    assert.deepEqual(await stored(), ['a'])
  })

  test('is refused where its messages would go elsewhere', async () => {
    await createTopic(service, 't1')
    await publish({ msgs: keyed })
    await addQueues(service, 3)
    const others = keyed.map(({ key }) => ({ key, body: 'other' }))
    const { suc, msg } = await publish({ msgs: others, attempt: 2, attemptAgeMs: 10 })
    assert.deepEqual([suc, msg, await stored()], [false, 'publishId p-1 was used for other messages', bodies])
  })

  test('is not taken for used by a publish whose id begins with it', async () => {
    await createTopic(service, 't1')
    for (const publishId of ['p-1/1', 'p-1:k0.1.x', 'p-11']) await publish({ publishId, msgs: keyed.slice(0, 1) })
    await addQueues(service, 3)
    await publish({ msgs: keyed.slice(0, 1), attempt: 2, attemptAgeMs: 10 })
    assert.equal((await stored()).length, 4)
  })
})
