import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { addQueues, removeQueue } from '../../core/admin/queues.ts'
import { subscribe } from '../../core/admin/subscriptions.ts'
import type { Core } from '../../core/core.ts'
import { rebalance } from '../../core/group/rebalance.ts'
import { groupOf, queueOf, topicOf } from '../store/contract.ts'
import { assertPlaces, assertSettled, groupName, join, makeGroup, nowMs, read, topicName } from './groups.ts'
import { exploreOperators, newest, type OperatorScene } from './operators.ts'

/** A group whose members 1 and 2 are there; 1 owns both queues, of which the second can be removed. */
async function running({ store }: Core) {
  await makeGroup(store, { owners: [1, 1], members: [1, 2] })
  await store.setReadOnly(topicName, 2, nowMs - 60_000)
  // The ids after those of `makeGroup`.
  await store.takeIds('queue', 10)
}

/** A topic of two queues, and a group that has not subscribed to it yet. */
async function apart({ store }: Core) {
  await store.createTopic(
    topicOf(topicName),
    [1, 2].map(queueId => queueOf(topicName, queueId)),
  )
  await store.setReadOnly(topicName, 2, nowMs - 60_000)
  await store.takeIds('queue', 10)
  await store.createGroup(groupOf(groupName))
  await join(store, 1)
}

const adds = (core: Core) => addQueues(core, topicName, { count: 1 })
/** Whoever comes second may find that it is gone. */
const removes = (core: Core) =>
  removeQueue(core, topicName, '2').catch(error => {
    if (error.message !== 'topic orders has no queue 2') throw error
  })
const rebalances = (core: Core) => rebalance(core, groupName)
const subscribes = (core: Core) => subscribe(core, groupName, topicName, {})

/** Every queue of the topic has one place in the group, at what the group wants of it, with a member; no other has. */
async function judgePlaces(core: Core, wanted: (queueId: number) => number) {
  const snapshot = await read(core.store)
  assertSettled(snapshot)
  await assertPlaces(core.store, snapshot)
  for (const { queueId, offset, consumerId } of snapshot.offsets) {
    assert.equal(offset, wanted(queueId), `queue ${queueId}`)
    assert.notEqual(consumerId, 0, `queue ${queueId} is nobody's`)
  }
}

const ofRunning = (queueId: number) => (queueId <= 2 ? 10 : 0)

const scenes: Record<string, OperatorScene> = {
  'a queue is added while a rebalance runs': {
    before: running,
    acts: { adds, rebalances },
    judge: ({ core }) => judgePlaces(core, ofRunning),
  },
  'a queue is removed while a rebalance runs': {
    before: running,
    acts: { removes, rebalances },
    judge: ({ core }) => judgePlaces(core, ofRunning),
  },
  'a queue is added and another removed': {
    before: running,
    acts: { adds, removes },
    judge: ({ core }) => judgePlaces(core, ofRunning),
  },
  'a queue is removed by two at once': {
    before: running,
    acts: { removes, again: removes },
    judge: ({ core }) => judgePlaces(core, ofRunning),
  },
  'a queue is added while a group subscribes': {
    before: apart,
    acts: { adds, subscribes },
    // Whether the group subscribed before or after: nothing was published between.
    judge: async ({ core }) => {
      const { offsets } = await read(core.store)
      await judgePlaces(core, queueId => offsets.find(offset => offset.queueId === queueId)?.offset ?? -1)
      for (const { queueId, offset } of offsets) assert.ok(offset === newest || (queueId > 2 && offset === 0))
    },
  },
  'a queue is removed while a group subscribes': {
    before: apart,
    acts: { removes, subscribes },
    judge: ({ core }) => judgePlaces(core, () => newest),
  },
}

describe('a topic whose queues change while its groups do, in any order of the steps', () => {
  for (const [name, scene] of Object.entries(scenes)) {
    test(`ends with each queue in the group once, owned and told of: ${name}`, async t => {
      const { plays, ends } = await exploreOperators(scene)
      t.diagnostic(`${plays} plays, ${ends} ends`)
    })
  }
})

describe('a topic whose queues are changed by a process that dies', () => {
  const dying: Record<string, (core: Core) => Promise<unknown>> = { adds, removes }
  for (const [name, act] of Object.entries(dying)) {
    test(`is in order after the next rebalance, wherever it died: ${name}`, async t => {
      const { plays, ends } = await exploreOperators({
        before: running,
        acts: { [name]: act },
        failures: 1,
        judge: ({ core }) => judgePlaces(core, ofRunning),
      })
      t.diagnostic(`${plays} plays, ${ends} ends`)
    })
  }
})
