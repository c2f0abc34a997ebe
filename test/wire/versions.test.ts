import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { addQueues, commit, removeQueue, setReadOnly, viewGroup } from './operator.ts'
import { assignment, base, createGroup, createTopic, firstQueue, join, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
let consumerId: number
beforeEach(async () => {
  service = openService()
  for (const name of ['t1', 't2']) await createTopic(service, name, 2)
  await createGroup(service, 'g1', ['t1'])
  consumerId = await join(service, 'g1', ['t1', 't2'], 'a')
})
afterEach(() => service.close())

const g1 = { groupName: 'g1' }
const drained = async () => {
  await setReadOnly(service, 1)
  service.clock.advance(60_000)
}

/** What is done, and which versions tell a PMQ client of it: by `rb` it takes other queues, by `meta` other data of its own. */
const changes: { what: string; before?: () => Promise<unknown>; act: () => Promise<unknown>; tells: string[] }[] = [
  { what: 'another consumer joins', act: () => join(service, 'g1', ['t1'], 'b'), tells: ['rb'] },
  {
    what: 'another consumer leaves',
    before: () => join(service, 'g1', ['t1'], 'b'),
    act: async () => {
      const { members } = await viewGroup(service)
      await service.call('deRegister', { ...base, id: members.find(member => member.consumerName === 'b')?.consumerId })
    },
    tells: ['rb'],
  },
  { what: 'a consumer joins that handles nothing', act: () => join(service, 'g1', [], 'b'), tells: [] },
  {
    what: 'it subscribes to another topic',
    act: () => service.call('subscribe', {}, { ...g1, topicName: 't2' }),
    tells: ['rb', 'meta'],
  },
  {
    what: 'it unsubscribes',
    act: () => service.call('unsubscribe', undefined, { ...g1, topicName: 't1' }),
    tells: ['rb', 'meta'],
  },
  {
    what: 'settings of its subscription change',
    act: () => service.call('subscribe', { threadSize: 9 }, { ...g1, topicName: 't1' }),
    tells: ['meta'],
  },
  { what: 'its topic gets a queue', act: () => addQueues(service), tells: ['rb'] },
  { what: 'a queue of its topic is read-only', act: () => setReadOnly(service, 1), tells: [] },
  { what: 'a queue of its topic goes', before: drained, act: () => removeQueue(service, 1), tells: ['rb'] },
  {
    what: 'its consumer is denied',
    act: () => service.call('updateGroup', { deniedIps: ['10.1.1.1'] }, g1),
    tells: ['rb', 'meta'],
  },
  {
    what: 'nobody is denied that is there',
    act: () => service.call('updateGroup', { deniedIps: ['10.9.9.9'] }, g1),
    tells: ['meta'],
  },
  {
    what: 'its offsets are reset',
    act: () => service.call('resetOffsets', { of: 'all', to: 'end' }, g1),
    tells: ['meta'],
  },
  { what: 'only a reset is looked at', act: () => dryRun(), tells: [] },
  { what: 'a queue is stopped', act: () => service.call('stopQueues', { of: { queueId: 1 } }, g1), tells: ['meta'] },
  { what: 'a queue is started', act: () => service.call('startQueues', { of: { queueId: 1 } }, g1), tells: ['meta'] },
  {
    what: 'its consumer commits',
    before: () => publish(service, ['a'], 1),
    act: async () => commit(service, await firstQueue(service, consumerId), 1),
    tells: [],
  },
  {
    what: 'its consumer commits finally what stays with it',
    before: () => publish(service, ['a'], 1),
    act: async () => commit(service, await firstQueue(service, consumerId), 1, 1),
    tells: ['meta'],
  },
  {
    what: 'a rebalance is asked for that has nothing to do',
    act: () => service.call('rb', { ...base, consumerGroupNames: ['g1'] }),
    tells: [],
  },
  { what: 'messages are published', act: () => publish(service, ['a', 'b']), tells: [] },
]

const dryRun = () => service.call('resetOffsets', { of: 'all', to: 'end', dryRun: true }, g1)

describe('the versions of a group', () => {
  for (const { what, before, act, tells } of changes) {
    test(`tell by ${tells.join(' and ') || 'nothing'} that ${what}; none falls, and version rises with either`, async () => {
      await before?.()
      const earlier = await viewGroup(service)
      await act()
      const later = await viewGroup(service)
      const [rb, meta, version] = (['rbVersion', 'metaVersion', 'version'] as const).map(
        name => later[name] - earlier[name],
      )
      assert.ok(rb !== undefined && meta !== undefined && rb >= 0 && meta >= 0)
      assert.deepEqual([...(rb > 0 ? ['rb'] : []), ...(meta > 0 ? ['meta'] : [])], tells)
      assert.equal(version, rb + meta)
    })
  }

  test('tell a consumer that has them of nothing, and one that has not of everything, `queues` always among it', async () => {
    const { version } = await assignment(service, consumerId)
    const poll = (known: number, id = consumerId) =>
      service.call('getConsumerGroupPolling', {
        ...base,
        consumerId: id,
        consumerGroupVersion: { g1: known },
        waitMs: 0,
      })
    assert.equal((await poll(version)).consumerGroups, undefined)
    assert.equal((await poll(version + 1)).consumerGroups, undefined)
    const idle = await join(service, 'g1', [], 'idle')
    for (const known of [0, version - 1]) {
      for (const id of [consumerId, idle]) {
        const { consumerGroups } = await poll(known, id)
        assert.equal(typeof consumerGroups?.g1?.queues, 'object')
      }
    }
  })
})
