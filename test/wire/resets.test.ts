import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { tick } from '../../core/tick/tick.ts'
import { openSqliteStore } from '../../store/sqlite/open.ts'
import { bodiesOf, commit, viewGroup } from './operator.ts'
import { assignment, base, createGroup, createTopic, firstQueue, join, publish } from './scene.ts'
import { openService, type Service, turn } from './service.ts'

let service: Service
beforeEach(async () => {
  service = openService()
  await createTopic(service, 't1')
  await createGroup(service, 'g1', ['t1'])
})
afterEach(() => service.close())

const g1 = { groupName: 'g1' }
const reset = (to: unknown, more = {}) => service.call('resetOffsets', { of: 'all', to, ...more }, g1)
const offset = async () => (await viewGroup(service)).queues[0]?.offset

/** Publishes a message a second; answers with the times. */
async function publishInTime(bodies: string[]): Promise<number[]> {
  const times = []
  for (const body of bodies) {
    times.push(service.clock.now())
    await publish(service, [body])
    service.clock.advance(1_000)
  }
  return times
}

/** How a group is when it is reset: its consumer, and what the reset has to overcome. */
const states: Record<string, () => Promise<{ consumerId?: number; others?: number[] }>> = {
  'offline: nobody is there': async () => ({}),
  'online: its consumer is there': async () => ({ consumerId: await join(service, 'g1', ['t1'], 'a') }),
  'partly online: a member is there that handles nothing of it': async () => {
    await join(service, 'g1', [], 'idle')
    return {}
  },
  'in a hand-over: its queue is leaving for another consumer': async () => {
    const consumerId = await join(service, 'g1', ['t1'], 'a')
    await service.call('updateGroup', { maxConsumers: 1 }, g1)
    await join(service, 'g1', ['t1'], 'b')
    await service.call('updateGroup', { deniedIps: ['10.1.1.1'] }, g1)
    return { consumerId }
  },
}

describe('a reset of a group', () => {
  for (const [state, make] of Object.entries(states)) {
    test(`goes back, forwards and to a time, and tells before what it will do: ${state}`, async () => {
      await make()
      const times = await publishInTime(['a', 'b', 'c', 'd'])
      const targets: [unknown, number][] = [
        ['end', 4],
        [{ offset: 1 }, 1],
        [{ timeMs: times[2] }, 2],
        ['start', 0],
        [{ offset: 4 }, 4],
        [{ timeMs: 0 }, 0],
      ]
      let from = 0
      for (const [to, expected] of targets) {
        const told = await reset(to, { dryRun: true })
        assert.equal(await offset(), from)
        const { queues } = await reset(to)
        assert.deepEqual(queues, told.queues)
        const [skips, repeats] = [Math.max(0, expected - from), Math.max(0, from - expected)]
        assert.deepEqual(queues, [{ topicName: 't1', queueId: 1, from, to: expected, skips, repeats }])
        assert.equal(await offset(), expected)
        from = expected
      }
    })
  }

  test('outlives five rebalances: the last owner begins where it was set to', async () => {
    await publishInTime(['a', 'b', 'c'])
    let present = await join(service, 'g1', ['t1'], 'first')
    await reset({ offset: 1 })
    for (let n = 0; n < 5; n++) {
      const next = await join(service, 'g1', ['t1'], `next-${n}`)
      await service.call('deRegister', { ...base, id: present })
      present = next
    }
    assert.deepEqual(await bodiesOf(service, await firstQueue(service, present)), ['b', 'c'])
  })

  test('is told of by metaVersion, in a poll that waits and in heartbeats; rbVersion stays', async () => {
    const consumerId = await join(service, 'g1', ['t1'], 'a')
    await publishInTime(['a', 'b'])
    const { version } = await assignment(service, consumerId)
    const before = await viewGroup(service)
    const waiting = service.call('getConsumerGroupPolling', {
      ...base,
      consumerId,
      consumerGroupVersion: { g1: version },
    })
    await turn()
    await reset('end')
    assert.equal((await service.pass(waiting)).consumerGroups?.g1?.queues[1]?.offset, 2)
    const after = await viewGroup(service)
    assert.deepEqual([after.rbVersion, after.metaVersion > before.metaVersion], [before.rbVersion, true])
    const { versions } = await service.call('heartbeat', { ...base, consumerId, asyn: 0 })
    assert.deepEqual(versions, { g1: after.version })
  })

  test('fences an owner that is leaving: what it finishes after that does not undo it', async () => {
    const { consumerId = 0 } = (await states['in a hand-over: its queue is leaving for another consumer']?.()) ?? {}
    await publishInTime(['a', 'b', 'c'])
    const snapshot = await service.core.store.readGroup('g1')
    const [leaving] = snapshot?.offsets ?? []
    assert.ok(leaving?.nextConsumerId !== undefined && leaving.consumerId === consumerId)
    await reset({ offset: 1 })
    const { queueOffsetId, offsetVersion } = leaving
    const entry = { queueOffsetId, offsetVersion, offset: 3, consumerGroupName: 'g1' }
    const { results } = await service.call('commitOffset', { ...base, queueOffsets: [entry], flag: 1 })
    assert.equal(results?.[0]?.outcome, 'fenced')
    assert.equal(await offset(), 1)
  })

  test('ends a claim, and whoever claims next begins there', async () => {
    await service.call('createGroup', { name: 'g2', mode: 'claimed' })
    await service.call('subscribe', {}, { groupName: 'g2', topicName: 't1' })
    await publishInTime(['a', 'b'])
    const claim = () => service.call('claimQueues', { consumerGroupName: 'g2', claimant: 'a' })
    const [claimed] = Object.values((await claim()).queues ?? {})
    assert.ok(claimed)
    await service.call('resetOffsets', { of: 'all', to: { offset: 1 } }, { groupName: 'g2' })
    assert.equal(await commit(service, claimed, 2), 'fenced')
    const [again] = Object.values((await claim()).queues ?? {})
    assert.equal(again?.offset, 1)
  })

  test('of a stopped queue leaves it stopped', async () => {
    await publishInTime(['a', 'b'])
    await service.call('stopQueues', { of: 'all' }, g1)
    await reset('end')
    const [queue] = (await viewGroup(service)).queues
    assert.deepEqual([queue?.isStopped, queue?.offset], [true, 2])
  })

  test('does so to all of its queues, or to those that are meant', async () => {
    const ids = await createTopic(service, 't2', 2)
    await service.call('subscribe', {}, { ...g1, topicName: 't2' })
    const msgs = ids.map(queueId => ({ body: 'x', partitionInfo: { queueId } }))
    await service.call('publish', { ...base, topicName: 't2', msgs })
    await publish(service, ['a'])
    const offsets = async () => (await viewGroup(service)).queues.map(queue => queue.offset)
    await service.call('resetOffsets', { of: { queueId: ids[1] }, to: 'end' }, g1)
    assert.deepEqual(await offsets(), [0, 0, 1])
    await service.call('resetOffsets', { of: { topicName: 't2' }, to: 'end' }, g1)
    assert.deepEqual(await offsets(), [0, 1, 1])
    await reset('start')
    assert.deepEqual(await offsets(), [0, 0, 0])
  })

  test('to an offset behind the end of one of its queues is refused, and none is set', async () => {
    const [other] = await createTopic(service, 't2')
    await service.call('subscribe', {}, { ...g1, topicName: 't2' })
    await publish(service, ['a', 'b'])
    const { status, json } = await service.send('resetOffsets', { of: 'all', to: { offset: 2 } }, g1)
    assert.deepEqual([status, json.message], [400, `queue ${other} ends at offset 0; 2 lies behind it`])
    assert.equal(await offset(), 0)
  })
})

describe('a reset to the start', () => {
  test('begins with the first message that there is, and counts none that are gone', async () => {
    const store = openSqliteStore(':memory:')
    const trimmed = openService({ store })
    await createTopic(trimmed, 't1')
    await createGroup(trimmed, 'g1', ['t1'])
    for (const body of ['a', 'b', 'c']) {
      await publish(trimmed, [body])
      trimmed.clock.advance(86_400_000)
    }
    const consumerId = await join(trimmed, 'g1', ['t1'])
    await commit(trimmed, await firstQueue(trimmed, consumerId), 3)
    await store.trim(trimmed.clock.now() + 4.5 * 86_400_000, 10)
    const { queues } = await trimmed.call('resetOffsets', { of: 'all', to: 'start' }, g1)
    assert.deepEqual(queues, [{ topicName: 't1', queueId: 1, from: 3, to: 1, skips: 0, repeats: 2 }])
    assert.deepEqual(await bodiesOf(trimmed, await firstQueue(trimmed, consumerId)), ['b', 'c'])
    await trimmed.close()
  })
})

describe('a reset to a time', () => {
  const target = async (timeMs: number) => (await reset({ timeMs }, { dryRun: true })).queues[0]?.to

  test('begins with the message of that time, or the next one after it, to the millisecond', async () => {
    const [first = 0, second = 0, last = 0] = await publishInTime(['a', 'b', 'c'])
    const expected: [string, number, number][] = [
      ['before the first', first - 1, 0],
      ['when the first was sent', first, 0],
      ['just after it', first + 1, 1],
      ['just before the second', second - 1, 1],
      ['when the second was sent', second, 1],
      ['when the last was sent', last, 2],
      ['just after the last', last + 1, 3],
      ['now', service.clock.now(), 3],
      ['in the future', service.clock.now() + 86_400_000, 3],
      ['in 1970', 0, 0],
      ['as late as can be', Number.MAX_SAFE_INTEGER, 3],
    ]
    for (const [when, timeMs, to] of expected) assert.equal(await target(timeMs), to, when)
  })

  test('begins at the end of a queue that never had a message, whatever the time', async () => {
    for (const timeMs of [0, service.clock.now(), Number.MAX_SAFE_INTEGER]) assert.equal(await target(timeMs), 0)
  })

  test('begins at the end of a queue whose messages are all gone', async () => {
    const [first = 0] = await publishInTime(['a', 'b', 'c'])
    const consumerId = await join(service, 'g1', ['t1'])
    await commit(service, await firstQueue(service, consumerId), 3)
    await service.core.store.checkpointQueue('t1', 1, 4)
    const emptied = openService({ store: withoutLog(service) })
    const answer = await emptied.call('resetOffsets', { of: 'all', to: { timeMs: first }, dryRun: true }, g1)
    assert.equal(answer.queues[0]?.to, 3)
  })

  test('begins before a batch that was sent then, as a whole', async () => {
    await publish(service, ['a', 'b'])
    service.clock.advance(1_000)
    await publish(service, ['c', 'd'])
    assert.equal(await target(service.clock.now()), 2)
  })
})

/** The same registry, and a log of which TTL has left nothing. */
function withoutLog({ core }: Service) {
  const nothing = async () => []
  return new Proxy(core.store, {
    get: (store, name) => {
      if (name === 'readHeaders' || name === 'readBatches') return nothing
      const member = Reflect.get(store, name)
      return typeof member === 'function' ? member.bind(store) : member
    },
  })
}

describe('a group that nobody was in for a year', () => {
  test('resumes where it was, though nothing was sent meanwhile', async () => {
    const consumerId = await join(service, 'g1', ['t1'])
    await publish(service, ['a', 'b', 'c'])
    await commit(service, await firstQueue(service, consumerId), 2)
    await service.call('deRegister', { ...base, id: consumerId })
    for (let day = 0; day < 365; day += 5) {
      service.clock.advance(5 * 86_400_000)
      await tick(service.core)
    }
    await publish(service, ['after a year'])
    const late = await join(service, 'g1', ['t1'], 'late')
    const queue = await firstQueue(service, late)
    assert.equal(queue.offset, 2)
    assert.deepEqual(await bodiesOf(service, queue), ['after a year'])
  })

  test('is told where it was by a queue of which nothing is left', async () => {
    const consumerId = await join(service, 'g1', ['t1'])
    await publish(service, ['a', 'b', 'c'])
    await commit(service, await firstQueue(service, consumerId), 3)
    await service.call('deRegister', { ...base, id: consumerId })
    service.clock.advance(365 * 86_400_000)
    const emptied = openService({ store: withoutLog(service) })
    const { queues } = await emptied.call('getGroup', undefined, g1)
    assert.deepEqual([queues[0]?.offset, queues[0]?.lag], [3, 0])
  })
})
