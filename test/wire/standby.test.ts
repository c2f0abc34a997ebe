import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { viewGroup } from './operator.ts'
import { isDeleted, members, owned, start } from './placing.ts'
import { base, createGroup, createTopic } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(async () => {
  service = openService()
  await createTopic(service, 't1', 4)
  await createGroup(service, 'g1', ['t1'])
})
afterEach(() => service.close())

const group = { groupName: 'g1' }
const update = (settings: object) => service.call('updateGroup', settings, group)
const view = () => viewGroup(service)
const from = (clientIp: string) => ({ clientIp })
const leave = (id: number) => service.call('deRegister', { ...base, id })
const counts = async (...consumerIds: number[]) => {
  const has: number[] = []
  for (const id of consumerIds) has.push(Object.keys(await owned(service, id)).length)
  return has
}
const standby = async () => (await members(service)).map(member => member.isStandby)

describe('a member that is not allowed, or denied', () => {
  test('is on standby, and shown so; its topics are shown as unhandled if nobody else handles them', async () => {
    await update({ allowedIps: ['10.0.0.0/8'] })
    const outside = await start(service, 'a', from('192.168.0.1'))
    assert.deepEqual(await owned(service, outside), {})
    const { members, unhandledTopics, queues } = await view()
    assert.deepEqual(
      members.map(member => [member.ip, member.isStandby]),
      [['192.168.0.1', true]],
    )
    assert.deepEqual(unhandledTopics, ['t1'])
    assert.deepEqual(
      queues.map(queue => queue.consumerName),
      Array.from({ length: 4 }, () => undefined),
    )
    const inside = await start(service, 'b', from('10.0.0.1'))
    assert.deepEqual(await counts(outside, inside), [0, 4])
    assert.deepEqual((await view()).unhandledTopics, [])
    assert.deepEqual(await standby(), [true, false])
  })

  test('is told by whole addresses: 10.0.0.1 is not 10.0.0.11', async () => {
    await update({ deniedIps: ['10.0.0.1'] })
    const eleven = await start(service, 'a', from('10.0.0.11'))
    const one = await start(service, 'b', from('10.0.0.1'))
    const mapped = await start(service, 'c', from('::ffff:10.0.0.1'))
    assert.deepEqual(await counts(eleven, one, mapped), [4, 0, 0])
  })

  test('is on no list with what is no address', async () => {
    const nonsense = await start(service, 'a', from('unknown'))
    await update({ deniedIps: ['0.0.0.0/0', '::/0'] })
    assert.deepEqual(await counts(nonsense), [4])
    await update({ deniedIps: [], allowedIps: ['0.0.0.0/0', '::/0'] })
    assert.deepEqual(await standby(), [true])
  })

  test('is nobody’s concern elsewhere: the lists of a group are its own', async () => {
    await createGroup(service, 'g2', ['t1'])
    await update({ deniedIps: ['10.1.1.1'] })
    const id = await start(service, 'a', { groups: { g1: ['t1'], g2: ['t1'] } })
    assert.deepEqual(Object.keys(await owned(service, id, 'g2')).length, 4)
    assert.deepEqual(await owned(service, id, 'g1'), {})
  })
})

describe('a group of few', () => {
  test('has the ones that joined first; the others are on standby, and take over when one leaves', async () => {
    await update({ maxConsumers: 2 })
    const ids: number[] = []
    for (const name of ['a', 'b', 'c', 'd']) {
      ids.push(await start(service, name))
      service.clock.advance(1_000)
    }
    const [a = 0, b = 0, c = 0, d = 0] = ids
    assert.deepEqual(await standby(), [false, false, true, true])
    await leave(a)
    assert.deepEqual(await standby(), [false, false, true])
    assert.ok((await counts(c))[0] === 2 && (await counts(d))[0] === 0)
    await leave(b)
    assert.deepEqual(await standby(), [false, false])
    assert.deepEqual(await counts(c, d), [2, 2])
  })

  test('has a standby take over when one dies', async () => {
    await update({ maxConsumers: 1 })
    await start(service, 'a')
    const waiting = await start(service, 'b')
    for (let beats = 0; beats < 5; beats++) {
      service.clock.advance(10_000)
      await isDeleted(service, waiting)
    }
    assert.deepEqual(await counts(waiting), [4])
    assert.deepEqual(await standby(), [false])
  })

  test('does not lose its turn to who joins again', async () => {
    await update({ maxConsumers: 1 })
    const first = await start(service, 'a')
    service.clock.advance(1_000)
    const second = await start(service, 'b')
    service.clock.advance(1_000)
    assert.equal(await start(service, 'a'), first)
    assert.deepEqual(await counts(first, second), [4, 0])
  })

  test('counts only those that may be given queues', async () => {
    await update({ maxConsumers: 1, deniedIps: ['10.0.0.9'] })
    await start(service, 'a', from('10.0.0.9'))
    const able = await start(service, 'b', from('10.0.0.1'))
    assert.deepEqual(await counts(able), [4])
  })
})
