import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { EndpointName } from '../../core/protocol/endpoints.ts'
import type { Client } from '../../sdk/src/client.ts'
import { PmqClientError } from '../../sdk/src/errors.ts'
import type { Message } from '../../sdk/src/message.ts'
import type { Transport } from '../../sdk/src/transport.ts'
import { live } from './java-client.ts'
import { nameOfPath, openNodeClient } from './node-client.ts'
import { ordinary } from './operator.ts'
import { base, createGroup, createTopic, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

const bad = 'm05'
const bodies = Array.from({ length: 10 }, (_, index) => `m${String(index + 1).padStart(2, '0')}`)
const retryCount = 2
/** What the fail topic has of the bad one in the end: each time that it failed, the last one as a dead letter. */
const allFailures = [1, 2, 3]

let service: Service
let clients: Client[]
beforeEach(async () => {
  service = openService()
  clients = []
  await createTopic(service, 't1', 1)
  await createGroup(service, 'g1', ['t1'])
  const settings = { threadSize: 2, consumerBatchSize: 3, retryCount, retryDelaySeconds: 1, maxPullTimeSeconds: 1 }
  await service.call('subscribe', settings, { groupName: 'g1', topicName: 't1' })
  await publish(service, bodies)
})
afterEach(async () => {
  for (const client of clients) await service.pass(client.close())
  await service.close()
})

/**
 * The request of a process at which it is killed, some time after it was made: on its way to the service, or on the way
 * back. What else the process asks goes on until then.
 */
type Death = { name: EndpointName; nth: number; when: 'there' | 'back' }

const onItsWayMs = 2_000

const cutOff = () => new PmqClientError('connection_lost', 'There is no such process any more.')

/** A process whose consumer fails one body, always. */
function startProcess(death?: Death) {
  const seen: Message[] = []
  const times = new Map<EndpointName, number>()
  let consumerId: unknown
  let isDead = false

  async function die() {
    await service.clock.sleep(onItsWayMs)
    isDead = true
  }
  const mortal =
    (transport: Transport): Transport =>
    async (path, request, options) => {
      if (isDead) throw cutOff()
      const name = nameOfPath(path)
      const nth = (times.get(name) ?? 0) + 1
      times.set(name, nth)
      const isLast = name === death?.name && nth === death.nth
      if (isLast && death.when === 'there') await die()
      if (isDead) throw cutOff()
      const answer = await transport(path, request, options)
      if (name === 'register') consumerId = (answer as { id?: number }).id
      if (isLast) await die()
      if (isDead) throw cutOff()
      return answer
    }

  const client = openNodeClient(service, 1 + clients.length, mortal)
  clients.push(client)
  const { start } = client.consumer({
    groupName: 'g1',
    topics: {
      t1(messages) {
        if (isDead) return new Promise(() => {})
        seen.push(...messages)
        return messages.filter(({ body }) => body === bad).map(({ offset }) => offset)
      },
    },
    stopTimeoutMs: 0,
  })
  return {
    client,
    seen,
    times,
    start: () => void start(),
    isDead: () => isDead,
    /** The service hears that it is no more. */
    expire: async () => consumerId !== undefined && service.call('deRegister', { ...base, id: consumerId }),
  }
}

/** The counts with which the bad one is in the fail topic. */
async function failures(): Promise<number[]> {
  const topicName = 'g1_t1_fail'
  const found: number[] = []
  for (const { queueId } of (await service.call('getTopicView', undefined, { topicName })).queues) {
    const request = { ...base, queueId, offsetStart: 0, offsetEnd: 900, topicName, consumerGroupName: 'g1' }
    for (const message of (await service.call('pullData', request)).msgs ?? []) {
      assert.equal(message.body, bad)
      found.push(message.retryCount)
    }
  }
  return found.toSorted()
}

async function places() {
  // A read of a group is shared for so long, and need not know of the last commits.
  service.clock.advance(100)
  return (await service.call('getGroup', undefined, { groupName: 'g1' })).queues
}

async function committed(): Promise<number> {
  return ordinary(await places())[0]?.offset ?? assert.fail()
}

const firstRuns = (seen: readonly Message[]) => seen.filter(message => message.retryCount === 0)

/** How often each request is one to die at; all of them are made in a life without a death. */
const lives: Partial<Record<EndpointName, number>> = {
  register: 1,
  registerConsumerGroup: 1,
  getConsumerGroupPolling: 1,
  pullData: 6,
  commitOffset: 3,
  publishAndUpdateResultFailMsg: 3,
}

describe('a Node consumer that is killed', () => {
  for (const [name, times] of Object.entries(lives)) {
    for (let nth = 1; nth <= times; nth++) {
      for (const when of ['there', 'back'] as const) {
        test(`while its ${name} ${nth} is on its way ${when} loses no message and no failure, and repeats nothing that it had committed`, async () => {
          const victim = startProcess({ name: name as EndpointName, nth, when })
          victim.start()
          for (let second = 0; !victim.isDead() && second < 30; second++) await live(service, 1_000)
          assert.ok(victim.isDead())
          const offset = await committed()
          const stored = await failures()
          assert.ok(offset < 5 || stored.length > 0, 'never in neither')

          await victim.expire()
          const heir = startProcess()
          heir.start()
          await live(service, 20_000)
          assert.deepEqual(
            [...new Set(firstRuns([...victim.seen, ...heir.seen]).map(({ body }) => body))].toSorted(),
            bodies,
          )
          assert.ok(firstRuns(heir.seen).every(message => message.offset > offset))
          assert.deepEqual([...new Set(await failures())], allFailures)
          assert.ok((await places()).every(({ lag }) => lag === 0))
        })
      }
    }
  }
})

describe('a Node consumer that is restarted between the tries of a message', () => {
  test('tries it as often as may be over all its lives, and handles all others once', async () => {
    const lives = [...allFailures, undefined].map(count => ({ count, process: startProcess() }))
    for (const { count, process } of lives) {
      process.start()
      if (count === undefined) await live(service, 30_000)
      while (count !== undefined && (await failures()).length < count) await live(service, 50)
      await service.pass(process.client.close())
    }
    const seen = lives.flatMap(({ process }) => process.seen)
    assert.deepEqual(
      lives.map(({ process }) => process.seen.filter(({ body }) => body === bad).map(message => message.retryCount)),
      [[0], [1], [2], []],
    )
    const others = seen.filter(({ body }) => body !== bad).map(({ body }) => body)
    assert.deepEqual(
      others.toSorted(),
      bodies.filter(body => body !== bad),
    )
    assert.deepEqual([await committed(), await failures()], [bodies.length, allFailures])
  })
})
