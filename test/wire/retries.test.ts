import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { type Handled, live, startJavaClient } from './java-client.ts'
import { commit, ordinary, viewGroup, viewTopic } from './operator.ts'
import { assignment, base, createGroup, createTopic, join, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(async () => {
  service = openService({ settings: { pollHoldMs: 500 } })
  await createTopic(service, 't1')
  await createGroup(service, 'g1', ['t1'])
})
afterEach(() => service.close())

const to = { groupName: 'g1', topicName: 't1' }
const failName = 'g1_t1_fail'
const delaySeconds = 5

/** How far each queue of the fail topic reaches, together. */
const failures = async () =>
  (await viewTopic(service, failName)).queues.reduce((sum, { nextOffset }) => sum + nextOffset - 1, 0)

/** What there is in the fail topic: the count of each message. */
async function counts(): Promise<number[]> {
  const found: number[] = []
  for (const { queueId } of (await viewTopic(service, failName)).queues) {
    const request = { ...base, queueId, offsetStart: 0, offsetEnd: 500, topicName: failName, consumerGroupName: 'g1' }
    const { msgs = [] } = await service.call('pullData', request)
    found.push(...msgs.map(message => message.retryCount))
  }
  return found.toSorted((a, b) => a - b)
}

const times = (seen: readonly Handled[], body: string) => seen.filter(message => message.body === body).length

describe('a message that a Java client fails to handle', () => {
  for (const retryCount of [0, 1, 3]) {
    test(`is handled exactly ${retryCount} times more, and then kept as a dead letter, for ever so many`, async () => {
      await service.call('subscribe', { retryCount, retryDelaySeconds: delaySeconds }, to)
      const client = await startJavaClient(service, 'a', { fails: body => body === 'bad' })
      await live(service, 3_000)
      await publish(service, ['good', 'bad', 'fine'])
      await live(service, (retryCount + 2) * (delaySeconds + 2) * 1000)
      assert.equal(times(client.seen, 'bad'), 1 + retryCount)
      assert.deepEqual([times(client.seen, 'good'), times(client.seen, 'fine')], [1, 1])
      assert.deepEqual(
        await counts(),
        Array.from({ length: retryCount + 1 }, (_, i) => i + 1),
      )
      await live(service, 30_000)
      assert.deepEqual([times(client.seen, 'bad'), await failures()], [1 + retryCount, retryCount + 1])
      const { topics, failTopics } = await service.call('listTopics')
      assert.deepEqual([topics, failTopics], [['t1'], [failName]])
      const { count } = await service.call('getMessageCount', { ...base, consumerGroupName: 'g1' })
      assert.equal(count, 0)
      client.kill()
    })
  }

  test('does not hold its queue up, and is handled no more once it succeeds', async () => {
    await service.call('subscribe', { retryDelaySeconds: delaySeconds }, to)
    let hasFailed = false
    const fails = (body: string) => {
      const isFirst = body === 'bad' && !hasFailed
      if (isFirst) hasFailed = true
      return isFirst
    }
    const client = await startJavaClient(service, 'a', { fails })
    await live(service, 3_000)
    await publish(service, ['bad', 'next'])
    await live(service, 2_000)
    assert.deepEqual(
      client.seen.map(message => message.body),
      ['bad', 'next'],
    )
    await live(service, 20_000)
    assert.deepEqual(
      client.seen.map(message => message.body),
      ['bad', 'next', 'bad'],
    )
    assert.deepEqual(await counts(), [1])
    client.kill()
  })

  test('is handled after the delay that is set while it waits, and as often', async () => {
    await service.call('subscribe', { retryDelaySeconds: 600 }, to)
    const client = await startJavaClient(service, 'a', { fails: body => body === 'bad' })
    await live(service, 3_000)
    await publish(service, ['bad'])
    await live(service, 30_000)
    assert.equal(times(client.seen, 'bad'), 1)
    await service.call('subscribe', { retryDelaySeconds: 1, retryCount: 1 }, to)
    await live(service, 10_000)
    assert.deepEqual([times(client.seen, 'bad'), await counts()], [2, [1, 2]])
    client.kill()
  })
})

describe('who dies with a message that failed', () => {
  const failed = [{ body: 'bad', retryCount: 1 }]

  test('before its failure was stored leaves it where it is: the next one is handed it', async () => {
    const first = await join(service, 'g1', ['t1'], 'first')
    await publish(service, ['bad'])
    await service.call('deRegister', { ...base, id: first })
    const [queue] = (await assignment(service, await join(service, 'g1', ['t1'], 'second'))).queues
    assert.deepEqual([queue?.offset, await failures()], [0, 0])
  })

  test('before its commit leaves it in both places, and never in neither', async () => {
    const first = await join(service, 'g1', ['t1'], 'first')
    await publish(service, ['bad'])
    const [own] = (await assignment(service, first)).queues
    assert.ok(own)
    const request = { ...base, queueId: own.queueId, failMsg: { topicName: failName, msgs: failed } }
    assert.equal((await service.call('publishAndUpdateResultFailMsg', request)).suc, true)
    await service.call('deRegister', { ...base, id: first })
    const next = await assignment(service, await join(service, 'g1', ['t1'], 'second'))
    assert.deepEqual([next.queues[0]?.offset, await failures()], [0, 1])
    const [lag] = ordinary((await viewGroup(service)).queues).map(each => each.lag)
    assert.equal(lag, 1)
    assert.equal(next.failQueues.length, 2)
    assert.equal(await commit(service, own, 1), 'fenced')
  })
})
