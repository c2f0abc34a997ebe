import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { checkpointTopic } from '../../core/log/checkpoint.ts'
import { readHeads } from '../../core/log/resume.ts'
import type { Store } from '../../core/store.ts'
import { scriptStore } from '../core/scripted-store.ts'
import { batchOf, type ContractStore, groupOf, offsetOf, subscriptionOf } from '../store/contract.ts'
import { openInMemory } from '../store/open-sqlite.ts'
import { createContainer, makeTopic, placeOf, readAfter, send } from './containers.ts'

describe('the head of a queue', () => {
  let opened: ContractStore
  let store: Store
  before(async () => {
    opened = await openInMemory()
    store = opened.store
  })
  after(() => opened.close())

  const headOf = async (topicName: string, queueId: number) => (await readHeads(store, topicName))?.get(queueId) ?? 1
  const checkpointOf = async (topicName: string) => (await store.readTopic(topicName))?.queues.map(q => q.checkpoint)
  const subscribe = async (groupName: string, topicName: string, queueId: number, offset: number) => {
    await store.createGroup(groupOf(groupName))
    await store.addQueueOffset(offsetOf(groupName, queueId, { topicName, queueId, offset }))
    await store.createSubscription(subscriptionOf(groupName, topicName))
  }

  test('is checkpointed for each queue that has something behind its checkpoint', async () => {
    const topic = await makeTopic(store, 3)
    const [one = 0, , three = 0] = topic.queueIds
    await send(createContainer(store), topic.name, ['a', 'b'], { toQueue: one })
    await send(createContainer(store), topic.name, ['c'], { toQueue: three })
    await checkpointTopic(createContainer(store), topic.name)
    assert.deepEqual(await checkpointOf(topic.name), [3, 1, 2])
  })

  test('costs no write where nothing has come since, and no checkpoint goes back', async () => {
    const topic = await makeTopic(store, 1)
    const [queueId = 0] = topic.queueIds
    await send(createContainer(store), topic.name, ['a', 'b', 'c'])
    const { store: watched, calls } = scriptStore(store)
    for (let i = 0; i < 3; i++) await checkpointTopic(createContainer(watched), topic.name)
    assert.equal(calls.filter(call => call.operation === 'checkpointQueue').length, 1)
    await opened.deleteBatches(queueId, [1])
    await checkpointTopic(createContainer(store), topic.name)
    await store.appendBatch(batchOf(queueId, 1))
    await checkpointTopic(createContainer(store), topic.name)
    assert.deepEqual(await checkpointOf(topic.name), [4])
  })

  test('of a topic that is gone is nobody’s', async () => {
    await checkpointTopic(createContainer(store), 'unknown')
  })

  test('is not lost in idle months: offsets go on where they were, and a group that waits misses nothing', async () => {
    const topic = await makeTopic(store, 1)
    const [queueId = 0] = topic.queueIds
    await send(createContainer(store), topic.name, ['a', 'b', 'c'])
    await checkpointTopic(createContainer(store), topic.name)
    await opened.deleteBatches(queueId, [1])
    for (const offset of [4, 5]) {
      assert.equal(placeOf(await send(createContainer(store), topic.name, [`${offset}`])).offset, offset)
    }
    const read = await readAfter(createContainer(store), queueId, 3)
    assert.deepEqual(read, {
      messages: [
        { offset: 4, value: '4' },
        { offset: 5, value: '5' },
      ],
      skipped: 0,
    })
  })

  test('is the greatest of the checkpoint and of what its groups have committed, when asked in depth', async () => {
    const topic = await makeTopic(store, 2)
    const [queueId = 0, other = 0] = topic.queueIds
    await subscribe(`${topic.name}-low`, topic.name, queueId, 4)
    await subscribe(`${topic.name}-high`, topic.name, queueId, 11)
    await subscribe(`${topic.name}-other`, topic.name, other, 70)
    assert.equal(await headOf(topic.name, queueId), 12)
    await store.checkpointQueue(topic.name, queueId, 30)
    assert.equal(await headOf(topic.name, queueId), 30)
  })

  test('is looked up once for all queues of a topic that are asked for at the same time', async () => {
    const topic = await makeTopic(store, 50)
    const { store: watched, calls } = scriptStore(store)
    const container = createContainer(watched, { settings: { topicCacheMs: 60_000 } })
    await Promise.all(topic.queueIds.map(queueId => container.findEnd(topic.name, queueId)))
    assert.equal(calls.filter(call => call.operation === 'readTopic').length, 1)
  })

  test('of a queue that the registry does not know is 1', async () => {
    const topic = await makeTopic(store, 1)
    assert.equal(await headOf(topic.name, 9_999), 1)
    assert.equal(await headOf('unknown', 1), 1)
  })
})
