import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Client } from '../../sdk/src/client.ts'
import { live } from './java-client.ts'
import { openNodeClient } from './node-client.ts'
import { viewGroup } from './operator.ts'
import { createGroup, createTopic, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

const queues = 20
const consumers = 4

let service: Service
let queueIds: number[]
let clients: Client[]
/** Each message that was handled, and when, by queue. */
let handled: Map<number, { body: string; atMs: number }[]>
let sent: number
let made: number
beforeEach(async () => {
  service = openService({ settings: { pullHoldMs: 5_000 } })
  queueIds = await createTopic(service, 't1', queues)
  await createGroup(service, 'g1', ['t1'])
  handled = new Map(queueIds.map(queueId => [queueId, []]))
  clients = []
  sent = 0
  made = 0
})
afterEach(async () => {
  await service.pass(Promise.all(clients.map(client => client.close())))
  await service.close()
})

function start() {
  const client = openNodeClient(service, ++made)
  clients.push(client)
  const consumer = client.consumer({
    groupName: 'g1',
    topics: {
      t1(messages) {
        const atMs = service.clock.monotonic()
        for (const { queueId, body } of messages) handled.get(queueId)?.push({ body, atMs })
      },
    },
  })
  void consumer.start()
}

/** Lets the group work, with a message for each queue four times a second. */
async function work(seconds: number) {
  for (let step = 0; step < seconds * 4; step++) {
    const body = String(sent++).padStart(4, '0')
    for (const queueId of queueIds) await publish(service, [body], queueId)
    await live(service, 250)
  }
}

/** Of the queues of the topic; those of its fail topic are shared out behind them. */
async function owners(): Promise<Map<number, string>> {
  service.clock.advance(100)
  const group = await viewGroup(service)
  return new Map(group.queues.map(({ queueId, consumerName }) => [queueId, consumerName ?? 'nobody']))
}

/** How many queues each owner has. */
function countsOf(given: Map<number, string>): number[] {
  return [...Map.groupBy(given.values(), owner => owner).values()].map(same => same.length)
}

/** How many queues are with owners that have none there. */
function strangers(to: Map<number, string>, given: Map<number, string>): number {
  const known = new Set(to.values())
  return [...given.values()].filter(owner => !known.has(owner)).length
}

describe('a group of Node consumers that are restarted one by one under load', () => {
  test('moves no more queues than it has to, repeats and loses nothing, and those that do not move never pause', async () => {
    for (let count = 0; count < consumers; count++) start()
    await work(15)
    let before = await owners()
    for (let round = 0; round < consumers; round++) {
      for (const step of ['stop', 'start']) {
        const fromMs = service.clock.monotonic()
        const leaver = step === 'stop' ? clients.shift() : undefined
        const closed = leaver?.close()
        if (!leaver) start()
        await work(6)
        await closed
        const after = await owners()
        const counts = countsOf(after)
        assert.ok(
          counts.length === (leaver ? consumers - 1 : consumers) && Math.max(...counts) - Math.min(...counts) <= 1,
        )
        const stayed = queueIds.filter(queueId => after.get(queueId) === before.get(queueId))
        assert.equal(queues - stayed.length, leaver ? strangers(after, before) : strangers(before, after))
        for (const queueId of stayed) {
          const times = (handled.get(queueId) ?? []).map(({ atMs }) => atMs).filter(atMs => atMs >= fromMs)
          const gaps = times.slice(1).map((atMs, index) => atMs - (times[index] ?? 0))
          assert.ok(Math.max(...gaps) < 1_000, `queue ${queueId} paused for ${Math.max(...gaps)} ms`)
        }
        before = after
      }
    }
    await live(service, 10_000)
    const all = Array.from({ length: sent }, (_, index) => String(index).padStart(4, '0'))
    for (const messages of handled.values()) {
      assert.deepEqual(
        messages.map(({ body }) => body),
        all,
      )
    }
  })
})
