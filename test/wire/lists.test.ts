import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { members, owned, start } from './placing.ts'
import { assignment, base, createGroup, createTopic, publish } from './scene.ts'
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
const view = () => service.call('getGroup', undefined, group)
const from = (clientIp: string) => ({ clientIp })
const counts = async (...consumerIds: number[]) => {
  const has: number[] = []
  for (const id of consumerIds) has.push(Object.keys(await owned(service, id)).length)
  return has
}
const standby = async () => (await members(service)).map(member => member.isStandby)

/** The consumer stops what it was told to give up, having finished up to an offset: its final commit. */
async function release(before: Record<number, number>, after: Record<number, number>, offset: number) {
  const { queues } = await view()
  const leaving = queues.filter(({ queueId }) => queueId in before && !(queueId in after))
  const queueOffsets = leaving.map(({ queueId, queueOffsetId }) => {
    return { queueOffsetId, offsetVersion: before[queueId] ?? 0, offset, consumerGroupName: 'g1' }
  })
  const { results } = await service.call('commitOffset', { ...base, queueOffsets, flag: 1 })
  return results?.map(result => result.outcome)
}

describe('lists that change while consumers run', () => {
  test('take effect at once, and the queues are handed over cleanly', async () => {
    const first = await start(service, 'a', from('10.0.0.1'))
    const second = await start(service, 'b', from('10.0.0.2'))
    await release(await fullyOwned(first), await owned(service, first), 0)
    for (const queueId of [1, 2, 3, 4]) await publish(service, ['x', 'y', 'z'], queueId)
    const before = await owned(service, second)
    assert.deepEqual(await counts(first, second), [2, 2])

    await update({ deniedIps: ['10.0.0.2'] })
    assert.deepEqual(await standby(), [false, true])
    // They are leaving: nobody is given them until their owner has finished.
    assert.deepEqual(await counts(first, second), [2, 0])
    assert.deepEqual(await release(before, {}, 2), ['advanced', 'advanced'])
    const { queues } = await assignment(service, first)
    assert.equal(queues.length, 4)
    const handed = queues.filter(({ queueId }) => queueId in before)
    assert.deepEqual(
      handed.map(({ offset }) => offset),
      [2, 2],
    )
    assert.deepEqual(new Set(await release(before, {}, 3)), new Set(['fenced']))
  })

  test('give everybody a part again when they are emptied', async () => {
    await update({ deniedIps: ['10.0.0.2'], maxConsumers: 1 })
    const first = await start(service, 'a', from('10.0.0.1'))
    const second = await start(service, 'b', from('10.0.0.2'))
    const before = await owned(service, first)
    await update({ deniedIps: [], maxConsumers: 0 })
    await release(before, await owned(service, first), 0)
    assert.deepEqual(await counts(first, second), [2, 2])
  })

  test('leave a group whose members are all denied with nobody, and nothing is lost', async () => {
    const only = await start(service, 'a', from('10.0.0.1'))
    await publish(service, ['x', 'y'], 1)
    const before = await owned(service, only)
    await update({ allowedIps: ['10.0.0.2'] })
    assert.deepEqual([await counts(only), (await view()).unhandledTopics], [[0], ['t1']])
    await release(before, {}, 1)
    await update({ allowedIps: [] })
    const { queues } = await assignment(service, only)
    assert.deepEqual(
      queues.map(({ queueId, offset }) => [queueId, offset]),
      [
        [1, 1],
        [2, 0],
        [3, 0],
        [4, 0],
      ],
    )
  })

  test('keep what is not named, and raise the version also where nothing moves', async () => {
    const { version } = await update({ allowedIps: ['10.0.0.0/8'], deniedIps: ['10.0.0.9'], maxConsumers: 3 })
    const changed = await update({ maxConsumers: 5 })
    assert.deepEqual([changed.allowedIps, changed.deniedIps, changed.maxConsumers], [['10.0.0.0/8'], ['10.0.0.9'], 5])
    assert.ok(changed.version > version)
    assert.deepEqual((await update({})).maxConsumers, 5)
  })

  test('may be given when the group is created', async () => {
    const settings = { allowedIps: ['10.0.0.0/8'], deniedIps: ['::1'], maxConsumers: 7 }
    const { allowedIps, deniedIps, maxConsumers } = await service.call('createGroup', { name: 'g2', ...settings })
    assert.deepEqual({ allowedIps, deniedIps, maxConsumers }, settings)
  })
})

describe('a wrong list', () => {
  for (const entry of ['10.0.0', '10.0.0.1/33', 'host.example', '', '10.0.0.1-9', 'fe80::1%eth0']) {
    test(`is refused, and changes nothing: ${JSON.stringify(entry)}`, async () => {
      const { version } = await view()
      for (const settings of [{ allowedIps: ['10.0.0.1', entry] }, { deniedIps: [entry] }]) {
        const { status, json } = await service.send('updateGroup', settings, group)
        assert.equal(status, 400)
        const accepted = 'accepted is an IP address, or a range such as 10.1.0.0/16'
        assert.equal(json.message, `"${entry}" is no IP address; ${accepted}`)
        assert.equal((await service.send('createGroup', { name: 'g2', ...settings })).status, 400)
      }
      assert.equal((await view()).version, version)
      assert.deepEqual((await service.call('listGroups')).groups, ['g1'])
    })
  }

  for (const [what, settings] of [
    ['a number of consumers below 0', { maxConsumers: -1 }],
    ['a broken number of consumers', { maxConsumers: 1.5 }],
    ['more than 100 entries', { deniedIps: Array.from({ length: 101 }, (_, i) => `10.0.0.${i}`) }],
    ['an entry that is no text', { allowedIps: [10] }],
    ['a misspelt setting', { allowedIPs: [] }],
  ] as const) {
    test(`is refused: ${what}`, async () => {
      assert.equal((await service.send('updateGroup', settings, group)).status, 400)
    })
  }

  test('is refused for a group that is not there', async () => {
    assert.equal((await service.send('updateGroup', { maxConsumers: 1 }, { groupName: 'g9' })).status, 404)
  })
})

/** What a consumer owns, with what is leaving it. */
async function fullyOwned(consumerId: number): Promise<Record<number, number>> {
  const { members, queues } = await view()
  const name = members.find(member => member.consumerId === consumerId)?.consumerName
  const own = queues.filter(queue => queue.consumerName === name)
  return Object.fromEntries(own.map(({ queueId, offsetVersion }) => [queueId, offsetVersion]))
}
