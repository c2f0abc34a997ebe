import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type ContractScene, queueOf, topicOf } from './contract.ts'

/** The part of the contract that is about queues of a topic in use: read-only, and gone. */
export function queueContract({ store, unique }: ContractScene): void {
  describe('queues that become read-only and go', () => {
    const makeTopic = async (queueIds = [1, 2]) => {
      const name = `topic-${unique()}`
      await store().createTopic(
        topicOf(name),
        queueIds.map(queueId => queueOf(name, queueId)),
      )
      const read = async () => (await store().readTopic(name))?.queues
      return { name, read }
    }

    test('does not remove a queue that was writable in between', async () => {
      const { name, read } = await makeTopic()
      await store().setReadOnly(name, 2, 5_000)
      await store().setReadOnly(name, 2, undefined)
      await store().setReadOnly(name, 2, 6_000)
      assert.equal(await store().removeQueue(name, 2, 5_000), 'writable')
      assert.equal((await read())?.length, 2)
      assert.equal(await store().removeQueue(name, 2, 6_000), 'removed')
      assert.equal((await read())?.length, 1)
    })

    test('makes a queue read-only, and remembers since when', async () => {
      const { name, read } = await makeTopic()
      assert.equal(await store().setReadOnly(name, 2, 5_000), 'set')
      assert.deepEqual(await read(), [queueOf(name, 1), queueOf(name, 2, { readOnlySinceMs: 5_000 })])
    })

    test('keeps since when a queue is read-only when it is made so again', async () => {
      const { name, read } = await makeTopic([1])
      await store().setReadOnly(name, 1, 5_000)
      assert.equal(await store().setReadOnly(name, 1, 9_000), 'set')
      assert.deepEqual(await read(), [queueOf(name, 1, { readOnlySinceMs: 5_000 })])
    })

    test('makes a queue writable again, also one that is', async () => {
      const { name, read } = await makeTopic([1])
      await store().setReadOnly(name, 1, 5_000)
      assert.equal(await store().setReadOnly(name, 1, undefined), 'set')
      assert.equal(await store().setReadOnly(name, 1, undefined), 'set')
      assert.deepEqual(await read(), [queueOf(name, 1)])
      await store().setReadOnly(name, 1, 9_000)
      assert.deepEqual(await read(), [queueOf(name, 1, { readOnlySinceMs: 9_000 })])
    })

    test('makes nothing read-only that is not there', async () => {
      const { name, read } = await makeTopic([1])
      assert.equal(await store().setReadOnly(name, 2, 5_000), 'unknown_queue')
      assert.equal(await store().setReadOnly(name, 2, undefined), 'unknown_queue')
      assert.equal(await store().setReadOnly(`${name}-unknown`, 1, 5_000), 'unknown_queue')
      assert.deepEqual(await read(), [queueOf(name, 1)])
      assert.equal(await store().readTopic(`${name}-unknown`), undefined)
    })

    test('checkpoints a queue that is read-only, and leaves it so', async () => {
      const { name, read } = await makeTopic([1])
      await store().setReadOnly(name, 1, 5_000)
      assert.equal(await store().checkpointQueue(name, 1, 40), 'advanced')
      assert.deepEqual(await read(), [queueOf(name, 1, { readOnlySinceMs: 5_000, checkpoint: 40 })])
    })

    test('removes a queue that is read-only, once', async () => {
      const { name, read } = await makeTopic()
      await store().setReadOnly(name, 1, 5_000)
      assert.equal(await store().removeQueue(name, 1), 'removed')
      assert.equal(await store().removeQueue(name, 1), 'unknown_queue')
      assert.equal(await store().checkpointQueue(name, 1, 40), 'unknown_queue')
      assert.equal(await store().setReadOnly(name, 1, 5_000), 'unknown_queue')
      assert.deepEqual(await read(), [queueOf(name, 2)])
    })

    test('does not remove a queue that is writable, or writable again', async () => {
      const { name, read } = await makeTopic([1])
      assert.equal(await store().removeQueue(name, 1), 'writable')
      await store().setReadOnly(name, 1, 5_000)
      await store().setReadOnly(name, 1, undefined)
      assert.equal(await store().removeQueue(name, 1), 'writable')
      assert.equal(await store().removeQueue(`${name}-unknown`, 1), 'unknown_queue')
      assert.deepEqual(await read(), [queueOf(name, 1)])
    })

    test('lets exactly one of many concurrent removals remove a queue', async () => {
      const { name, read } = await makeTopic()
      await store().setReadOnly(name, 1, 5_000)
      const outcomes = await Promise.all(Array.from({ length: 20 }, () => store().removeQueue(name, 1)))
      assert.deepEqual(outcomes.sort(), ['removed', ...Array(19).fill('unknown_queue')].sort())
      assert.deepEqual(await read(), [queueOf(name, 2)])
    })

    test('makes a queue writable or removes it, whichever comes first', async () => {
      const { name, read } = await makeTopic([1, 2, 3, 4, 5, 6])
      for (const queueId of [1, 2, 3, 4, 5, 6]) {
        await store().setReadOnly(name, queueId, 5_000)
        const reopen = () => store().setReadOnly(name, queueId, undefined)
        const remove = () => store().removeQueue(name, queueId)
        // Some engines take requests in the order that they come in.
        const [set, removed] =
          queueId % 2 === 0
            ? await Promise.all([reopen(), remove()])
            : (await Promise.all([remove(), reopen()])).toReversed()
        const left = (await read())?.find(queue => queue.queueId === queueId)
        if (removed === 'removed') assert.deepEqual([set, left], ['unknown_queue', undefined])
        else assert.deepEqual([set, removed, left], ['set', 'writable', queueOf(name, queueId)])
      }
    })

    test('agrees on one time since when a queue is read-only, however many say so at once', async () => {
      const { name, read } = await makeTopic([1])
      const times = Array.from({ length: 20 }, (_, i) => 5_000 + i)
      const outcomes = await Promise.all(times.map(sinceMs => store().setReadOnly(name, 1, sinceMs)))
      assert.deepEqual(new Set(outcomes), new Set(['set']))
      const [queue] = (await read()) ?? []
      assert.ok(times.includes(queue?.readOnlySinceMs ?? 0))
      await store().setReadOnly(name, 1, 1)
      assert.deepEqual(await read(), [queue])
    })
  })
}
