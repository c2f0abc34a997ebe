import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { isDeleted, memberIds, members, owned, start } from './placing.ts'
import { base, createGroup, createTopic, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(async () => {
  service = openService()
  await createTopic(service, 't1', 6)
  await createGroup(service, 'g1', ['t1'])
})
afterEach(() => service.close())

const at = (instanceId: string) => ({ instanceId })
const leave = (id: number) => service.call('deRegister', { ...base, id })
/** Has consumers let go of what is leaving them, as if they knew every version. */
async function handOver(consumerIds: number[], groupName = 'g1') {
  for (const consumerId of consumerIds) {
    const request = { ...base, consumerId, consumerGroupVersion: { [groupName]: 999 }, waitMs: 0 }
    await service.call('getConsumerGroupPolling', request)
  }
}
const finalCommit = async (consumerId: number, before: Record<number, number>) => {
  const { queues } = await service.call('getGroup', undefined, { groupName: 'g1' })
  const gone = queues.filter(({ queueId }) => queueId in before)
  const queueOffsets = gone.map(({ queueOffsetId, queueId }) => {
    return { queueOffsetId, offsetVersion: before[queueId] ?? 0, offset: 0, consumerGroupName: 'g1' }
  })
  const { results } = await service.call('commitOffset', { ...base, consumerId, queueOffsets, flag: 1 })
  return results?.map(result => result.outcome)
}

describe('a consumer that restarts at its place', () => {
  test('has the queues that it had before, and nobody else’s move', async () => {
    const others = [await start(service, 'a', at('0')), await start(service, 'c', at('2'))]
    const former = await start(service, 'b', at('1'))
    await handOver(others)
    const before = await Promise.all(others.map(id => owned(service, id)))
    const had = await owned(service, former)
    assert.equal(Object.keys(had).length, 2)

    const successor = await start(service, 'b2', at('1'))
    const has = await owned(service, successor)
    assert.deepEqual(Object.keys(has), Object.keys(had))
    assert.deepEqual(await Promise.all(others.map(id => owned(service, id))), before)
    assert.deepEqual(await memberIds(service), [...others, successor].toSorted())
  })

  test('fences the former process, whose commits and heartbeats are told so', async () => {
    const former = await start(service, 'a', at('0'))
    const had = await owned(service, former)
    await publish(service, ['x', 'y'], 1)
    const successor = await start(service, 'a2', at('0'))
    const has = await owned(service, successor)
    for (const queueId of Object.keys(had)) assert.ok((has[Number(queueId)] ?? 0) > (had[Number(queueId)] ?? 0))
    assert.deepEqual(new Set(await finalCommit(former, had)), new Set(['fenced']))
    assert.ok(await isDeleted(service, former))
    assert.ok(!(await isDeleted(service, successor)))
  })

  test('does so time and again', async () => {
    const other = await start(service, 'other', at('1'))
    let last = await start(service, 'a', at('0'))
    await handOver([other])
    const had = Object.keys(await owned(service, last))
    const others = await owned(service, other)
    for (const name of ['a2', 'a3', 'a4']) {
      last = await start(service, name, at('0'))
      assert.deepEqual(Object.keys(await owned(service, last)), had)
      assert.deepEqual(await owned(service, other), others)
    }
    assert.deepEqual(await memberIds(service), [other, last])
  })

  test('is shown with its place', async () => {
    await start(service, 'a', at('pod-0'))
    assert.deepEqual(
      (await members(service)).map(member => member.instanceId),
      ['pod-0'],
    )
  })

  test('leaves the same place in other groups, and other places, alone', async () => {
    await createGroup(service, 'g2', ['t1'])
    const elsewhere = await start(service, 'b', { instanceId: '0', groups: { g2: ['t1'] } })
    const neighbour = await start(service, 'c', at('1'))
    const withoutPlace = await start(service, 'd')
    await start(service, 'a', at('0'))
    const successor = await start(service, 'a2', at('0'))
    assert.deepEqual(await memberIds(service, 'g2'), [elsewhere])
    assert.deepEqual(await memberIds(service), [neighbour, withoutPlace, successor])
  })

  test('in several groups at once, has in each the queues that it had, and nobody else’s move', async () => {
    await createGroup(service, 'g2', ['t1'])
    const groups = { g1: ['t1'], g2: ['t1'] }
    const former = await start(service, 'a', { instanceId: '0', groups })
    const other = await start(service, 'b', { instanceId: '1', groups })
    for (const groupName of ['g1', 'g2']) await handOver([former], groupName)
    const had = [await owned(service, former, 'g1'), await owned(service, former, 'g2')].map(Object.keys)
    const others = [await owned(service, other, 'g1'), await owned(service, other, 'g2')]
    assert.deepEqual(
      others.map(queues => Object.keys(queues).length),
      [3, 3],
    )
    const successor = await start(service, 'a2', { instanceId: '0', groups })
    assert.deepEqual([await owned(service, other, 'g1'), await owned(service, other, 'g2')], others)
    assert.deepEqual(
      [await owned(service, successor, 'g1'), await owned(service, successor, 'g2')].map(Object.keys),
      had,
    )
    for (const groupName of ['g1', 'g2']) assert.deepEqual(await memberIds(service, groupName), [other, successor])
  })

  test('also takes the former one out of groups that it does not join any more', async () => {
    await createGroup(service, 'g2', ['t1'])
    await start(service, 'a', { instanceId: '0', groups: { g1: ['t1'], g2: ['t1'] } })
    const other = await start(service, 'b', { groups: { g2: ['t1'] } })
    await start(service, 'a2', at('0'))
    assert.deepEqual(await memberIds(service, 'g2'), [other])
    assert.equal(Object.keys(await owned(service, other, 'g2')).length, 6)
  })

  test('keeps its turn in a group of few', async () => {
    await service.call('updateGroup', { maxConsumers: 1 }, { groupName: 'g1' })
    await start(service, 'a', at('0'))
    service.clock.advance(1_000)
    const waiting = await start(service, 'b', at('1'))
    service.clock.advance(1_000)
    let last = 0
    for (const name of ['a2', 'a3']) {
      last = await start(service, name, at('0'))
      assert.equal(Object.keys(await owned(service, last)).length, 6)
      assert.deepEqual(await owned(service, waiting), {})
      service.clock.advance(1_000)
    }
    await leave(last)
    assert.equal(Object.keys(await owned(service, waiting)).length, 6)
  })

  test('does not get back what the former one was handing over to a third, which has it at once', async () => {
    const former = await start(service, 'a', at('0'))
    const had = await owned(service, former)
    const third = await start(service, 'b', at('1'))
    const kept = await owned(service, former)
    assert.deepEqual([Object.keys(kept).length, await owned(service, third)], [3, {}])
    const successor = await start(service, 'a2', at('0'))
    assert.deepEqual(Object.keys(await owned(service, successor)), Object.keys(kept))
    const handed = Object.keys(await owned(service, third))
    assert.deepEqual([...handed, ...Object.keys(kept)].toSorted(), Object.keys(had))
  })

  test('gets what was on its way to the former one', async () => {
    const giving = await start(service, 'a', at('0'))
    const before = await owned(service, giving)
    await start(service, 'b', at('1'))
    const kept = await owned(service, giving)
    const successor = await start(service, 'b2', at('1'))
    assert.deepEqual([await owned(service, successor), await owned(service, giving)], [{}, kept])
    assert.deepEqual(new Set(await finalCommit(giving, leaving(before, kept))), new Set(['unchanged']))
    assert.equal(Object.keys(await owned(service, successor)).length, 3)
    assert.deepEqual(await owned(service, giving), kept)
  })

  test('begins as anybody does where the former one has crashed and was given up', async () => {
    const former = await start(service, 'a', at('0'))
    const other = await start(service, 'b', at('1'))
    for (let beats = 0; beats < 6; beats++) {
      service.clock.advance(10_000)
      await isDeleted(service, other)
    }
    assert.deepEqual(await memberIds(service), [other])
    assert.ok(await isDeleted(service, former))
    const successor = await start(service, 'a2', at('0'))
    await handOver([other])
    assert.deepEqual(await memberIds(service), [other, successor])
    assert.equal(Object.keys(await owned(service, successor)).length, 3)
  })

  test('has its place under the same name too: the id is the same, and nobody is let go', async () => {
    const first = await start(service, 'a', at('0'))
    const before = await owned(service, first)
    assert.equal(await start(service, 'a', at('0')), first)
    assert.deepEqual([await owned(service, first), await memberIds(service)], [before, [first]])
  })
})

function leaving(before: Record<number, number>, kept: Record<number, number>): Record<number, number> {
  return Object.fromEntries(Object.entries(before).filter(([queueId]) => !(queueId in kept)))
}
