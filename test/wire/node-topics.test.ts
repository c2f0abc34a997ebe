import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Client } from '../../sdk/src/client.ts'
import type { Consumer } from '../../sdk/src/consumer.ts'
import type { ClientEvent } from '../../sdk/src/events.ts'
import type { Message } from '../../sdk/src/message.ts'
import { live } from './java-client.ts'
import { openNodeClient } from './node-client.ts'
import { removeQueue, setReadOnly, viewTopic } from './operator.ts'
import { createGroup, createTopic } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
let client: Client
let consumer: Consumer
/** `topic body`, in the order in which they were handled. */
let seen: string[]
let events: ClientEvent[]
/** What the handler of `t2` does with its messages. */
let handle: (messages: readonly Message[]) => Promise<number[] | undefined>
beforeEach(async () => {
  service = openService()
  client = openNodeClient(service)
  seen = []
  events = []
  handle = async () => undefined
  const note = (messages: readonly Message[]) => {
    for (const { topicName, body } of messages) seen.push(`${topicName} ${body}`)
  }
  await createTopic(service, 't1', 2)
  await createTopic(service, 't2', 1)
  await createGroup(service, 'g1', ['t1', 't2'])
  consumer = client.consumer({
    groupName: 'g1',
    topics: {
      t1: note,
      async t2(messages) {
        note(messages)
        return handle(messages)
      },
    },
    onEvent: event => events.push(event),
  })
  await service.pass(consumer.start())
  await live(service, 2_000)
})
afterEach(async () => {
  await service.pass(client.close())
  await service.close()
})

const send = (topicName: string, body: string) => service.pass(client.publish(topicName, { body }))
const count = (type: ClientEvent['type']) => events.filter(event => event.type === type).length
const topicNames = () => new Set(consumer.status().queues.map(({ topicName }) => topicName))

async function lags() {
  service.clock.advance(100)
  const { queues } = await service.call('getGroup', undefined, { groupName: 'g1' })
  return queues.map(({ lag }) => lag).filter(lag => lag > 0)
}

/** Publishes to `t1` for so many seconds; each message has to be handled before long. */
async function useTheOther(seconds: number) {
  for (let second = 0; second < seconds; second++) {
    const body = `${service.clock.now()}`
    await send('t1', body)
    await live(service, 6_000)
    assert.ok(seen.includes(`t1 ${body}`), body)
  }
}

describe('a Node consumer of two topics whose group unsubscribes from one', () => {
  for (const [what, outcome] of [
    ['succeeds', undefined],
    ['fails', [1]],
  ] as const) {
    test(`goes on with the other, though a call of the one still runs and ${what}`, async () => {
      const { promise, resolve } = Promise.withResolvers<number[] | undefined>()
      handle = () => promise
      await send('t2', 'a')
      await live(service, 6_000)
      assert.deepEqual(seen, ['t2 a'])
      await service.call('unsubscribe', undefined, { groupName: 'g1', topicName: 't2' })
      await useTheOther(2)
      resolve(outcome && [...outcome])
      await useTheOther(4)
      assert.deepEqual(topicNames(), new Set(['t1', 'g1_t1_fail']))
      // Its queue, and two of its fail topic. Where failures are the first to be refused, nobody says why.
      assert.deepEqual([count('removed') + count('fenced'), await lags()], [3, []])
      const { queues } = await viewTopic(service, 'g1_t2_fail')
      assert.ok(queues.every(({ nextOffset }) => nextOffset === 1))
    })
  }

  test('takes it up again without a restart, from what is sent from then on', async () => {
    await service.call('unsubscribe', undefined, { groupName: 'g1', topicName: 't2' })
    await useTheOther(2)
    await send('t2', 'missed')
    await service.call('subscribe', {}, { groupName: 'g1', topicName: 't2' })
    await useTheOther(2)
    await send('t2', 'b')
    await useTheOther(1)
    assert.deepEqual(
      seen.filter(text => text.startsWith('t2')),
      ['t2 b'],
    )
    assert.deepEqual(await lags(), [])
  })
})

test('a Node consumer goes on with the other queues of a topic when one is drained and removed', async () => {
  for (let index = 0; index < 4; index++) await send('t1', `${index}`)
  await live(service, 6_000)
  await setReadOnly(service, 1)
  await useTheOther(11)
  await removeQueue(service, 1)
  await useTheOther(5)
  assert.deepEqual(
    consumer
      .status()
      .queues.filter(({ topicName }) => topicName === 't1')
      .map(({ queueId }) => queueId),
    [2],
  )
  assert.equal(seen.length, new Set(seen).size)
  assert.deepEqual([count('removed'), await lags()], [1, []])
})
