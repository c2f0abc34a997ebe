import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { tick } from '../../core/tick/tick.ts'
import type { Client } from '../../sdk/src/client.ts'
import type { ConsumerOptions } from '../../sdk/src/consumer-options.ts'
import type { ClientEvent } from '../../sdk/src/events.ts'
import { openNodeClient } from './node-client.ts'
import { viewGroup } from './operator.ts'
import { createGroup, createTopic, publish } from './scene.ts'
import { openService, type Service, turn } from './service.ts'

/** Work that takes longer than the service waits for a heartbeat. */
const sessionTimeoutMs = 3_000

let service: Service
let clients: Client[]
/** What the consumers have handled, in order: `name offset`. */
let seen: string[]
let events: ClientEvent[]
beforeEach(async () => {
  service = openService({ settings: { sessionTimeoutMs } })
  clients = []
  seen = []
  events = []
  await createTopic(service, 't1', 2)
  await createGroup(service, 'g1', ['t1'])
  await service.call('subscribe', { threadSize: 1, consumerBatchSize: 1 }, { groupName: 'g1', topicName: 't1' })
})
afterEach(async () => {
  for (const client of clients) await service.pass(client.close())
  await service.close()
})

/** A consumer of which each call takes so long. */
async function start(name: string, workMs: number, options: Partial<ConsumerOptions> = {}) {
  const client = openNodeClient(service, 1 + clients.length)
  clients.push(client)
  const consumer = client.consumer({
    groupName: 'g1',
    topics: {
      async t1(messages, { signal }) {
        for (const { offset } of messages) seen.push(`${name} ${offset}`)
        await service.clock.sleep(workMs, signal)
      },
    },
    onEvent: event => events.push(event),
    ...options,
  })
  await service.pass(consumer.start())
  return consumer
}

/** Lets time pass, in which the service looks every second who lives. */
async function live(ms: number) {
  for (let passedMs = 0; passedMs < ms; passedMs += 250) {
    service.clock.advance(250)
    await turn()
    if (passedMs % 1_000 === 0) await tick(service.core)
  }
}

async function owners() {
  const { queues, rbVersion } = await viewGroup(service)
  return { rbVersion, owners: queues.map(({ consumerName, offsetVersion }) => [consumerName, offsetVersion]) }
}

const offsets = async () => (await viewGroup(service)).queues.map(({ offset }) => offset)
const count = (type: ClientEvent['type']) => events.filter(event => event.type === type).length

describe('a Node consumer whose handler takes longer than its session', () => {
  test('handles the message once, commits it, and keeps its queues all the time', async () => {
    await start('a', 20_000)
    await start('b', 20_000)
    await live(5_000)
    const before = await owners()
    assert.equal(new Set(before.owners.map(([consumerName]) => consumerName)).size, 2)
    for (const queueId of [1, 2]) await publish(service, ['x'], queueId)
    await live(19_000)
    assert.deepEqual([await owners(), await offsets()], [before, [0, 0]])
    await live(5_000)
    assert.deepEqual([await owners(), await offsets()], [before, [1, 1]])
    assert.deepEqual([seen.toSorted(), count('expired'), count('fenced')], [['a 1', 'b 1'], 0, 0])
  })

  test('handles what it has pulled ahead once, however long that waits', async () => {
    await start('a', 1_000)
    await publish(
      service,
      Array.from({ length: 500 }, () => 'x'),
      1,
    )
    await live(505_000)
    assert.deepEqual([seen, await offsets()], [Array.from({ length: 500 }, (_, index) => `a ${index + 1}`), [500, 0]])
  })

  test('keeps its queue while it stops, until the call has ended; then it is gone on with behind it', async () => {
    const leaver = await start('a', 3 * sessionTimeoutMs, { stopTimeoutMs: 60_000 })
    await publish(service, ['x', 'y'], 1)
    await live(1_000)
    const stopped = leaver.stop()
    await start('b', 0)
    await live(3 * sessionTimeoutMs - 2_000)
    assert.deepEqual([seen, (await offsets())[0]], [['a 1'], 0])
    await live(3_000)
    await stopped
    await live(3_000)
    assert.deepEqual([seen, await offsets(), count('expired')], [['a 1', 'b 2'], [2, 0], 0])
  })
})
