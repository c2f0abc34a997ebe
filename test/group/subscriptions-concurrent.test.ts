import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { addQueues } from '../../core/admin/queues.ts'
import { subscribe, unsubscribe } from '../../core/admin/subscriptions.ts'
import type { Core } from '../../core/core.ts'
import { failTopicName } from '../../core/group/fail-topics.ts'
import { rebalance } from '../../core/group/rebalance.ts'
import { groupOf, offsetOf, queueOf, topicOf } from '../store/contract.ts'
import { assertPlaces, assertSettled, groupName, join, makeGroup, read, topicName } from './groups.ts'
import { exploreOperators, newest, type OperatorScene } from './operators.ts'

/** A topic of two queues, and a group that does not subscribe to it, with a member. */
async function apart({ store }: Core) {
  const queues = [1, 2].map(queueId => queueOf(topicName, queueId))
  await store.createTopic(topicOf(topicName), queues)
  await store.createGroup(groupOf(groupName))
  await join(store, 1)
  await store.takeIds('queue', 10)
}

/** A group whose member owns both queues, and is behind with them. */
async function running({ store }: Core) {
  await makeGroup(store, { owners: [1, 1], members: [1] })
  for (const queueOffsetId of [1, 2]) await store.resetOffset({ groupName, queueOffsetId }, 5)
  await store.takeIds('queue', 10)
}

/** What a request to unsubscribe has left that died half-way: one offset, of a queue that was stopped. */
async function halfEnded(core: Core) {
  await apart(core)
  const left = { queueId: 2, offset: 5, consumerId: 1, offsetVersion: 1, rbVersion: 1, isStopped: true }
  await core.store.addQueueOffset(offsetOf(groupName, 2, left))
}

const failName = failTopicName(groupName, topicName)

const subscribes = (core: Core) => subscribe(core, groupName, topicName, {})
/** There may be nothing to end. */
const unsubscribes = (core: Core) =>
  unsubscribe(core, groupName, topicName).catch(error => {
    if (error.code !== 'not_found') throw error
  })
const rebalances = (core: Core) => rebalance(core, groupName)
const adds = (core: Core) => addQueues(core, topicName, { count: 1 })

/** Subscribed with a place in each queue, at what it should be, and with the member; or not at all. */
async function judgeOneOrTheOther({ store }: Core, wanted: (queueId: number) => number[] = () => [newest]) {
  const snapshot = await read(store)
  const [subscription] = snapshot.subscriptions
  const isSubscribed = subscription !== undefined
  const [topic, failTopic] = await Promise.all([topicName, failName].map(name => store.readTopic(name)))
  assert.deepEqual(topic?.groupNames, isSubscribed ? [groupName] : [])
  // Where the group subscribed by hand, without one, there is none.
  assert.deepEqual(failTopic?.groupNames ?? [], subscription?.failTopicId === undefined ? [] : [groupName])
  if (subscription?.failTopicId !== undefined) assert.equal(failTopic?.topic.topicId, subscription.failTopicId)
  await assertPlaces(store, snapshot)
  assertSettled(snapshot)
  for (const { queueId, offset, consumerId, isStopped } of snapshot.offsets) {
    assert.ok(wanted(queueId).includes(offset), `queue ${queueId} at ${offset}`)
    assert.deepEqual([consumerId, isStopped], [1, false])
  }
  return isSubscribed
}

/** It goes on where it was; its fail topic begins at now. */
const wantedOfRunning = (queueId: number) => [queueId <= 2 ? 5 : newest]

const scenes: Record<string, OperatorScene> = {
  'the same request twice': {
    before: apart,
    acts: { subscribes, again: subscribes },
    judge: async ({ core }) => assert.ok(await judgeOneOrTheOther(core)),
  },
  'a request while a rebalance runs': {
    before: apart,
    acts: { subscribes, rebalances },
    judge: async ({ core }) => assert.ok(await judgeOneOrTheOther(core)),
  },
  'an end of the subscription and a new one': {
    before: running,
    acts: { unsubscribes, subscribes },
    judge: ({ core }) => judgeOneOrTheOther(core),
  },
  'a new subscription while an end that died before is repeated': {
    before: halfEnded,
    acts: { unsubscribes, subscribes },
    judge: ({ core }) => judgeOneOrTheOther(core),
  },
  'a subscription that has no fail topic yet gets one from two at once': {
    before: running,
    acts: { subscribes, again: subscribes },
    judge: async ({ core }) => assert.ok(await judgeOneOrTheOther(core, wantedOfRunning)),
  },
  'a subscription that has no fail topic yet gets one while a rebalance runs': {
    before: running,
    acts: { subscribes, rebalances },
    judge: async ({ core }) => assert.ok(await judgeOneOrTheOther(core, wantedOfRunning)),
  },
  'an end of the subscription while a rebalance runs': {
    before: running,
    acts: { unsubscribes, rebalances },
    judge: async ({ core }) => assert.ok(!(await judgeOneOrTheOther(core))),
  },
  'an end of the subscription while the topic gets a queue': {
    before: running,
    acts: { unsubscribes, adds },
    judge: async ({ core }) => assert.ok(!(await judgeOneOrTheOther(core))),
  },
  'an end of the subscription by two at once': {
    before: running,
    acts: { unsubscribes, again: unsubscribes },
    judge: async ({ core }) => assert.ok(!(await judgeOneOrTheOther(core))),
  },
  'an end of the subscription, a new one, and a rebalance': {
    before: running,
    acts: { unsubscribes, subscribes, rebalances },
    judge: ({ core }) => judgeOneOrTheOther(core),
  },
}

describe('a group that subscribes and unsubscribes, in any order of the steps', () => {
  for (const [name, scene] of Object.entries(scenes)) {
    test(`ends as by one of the orders of the requests, and begins at now: ${name}`, async t => {
      const { plays, ends } = await exploreOperators(scene)
      t.diagnostic(`${plays} plays, ${ends} ends`)
    })
  }
})

describe('a request that dies', () => {
  test('and was to subscribe has done it or not, and is finished by the same again', async t => {
    const { plays, ends } = await exploreOperators({
      before: apart,
      acts: { subscribes },
      failures: 1,
      judge: async ({ core }) => {
        await subscribes(core)
        assert.ok(await judgeOneOrTheOther(core))
      },
    })
    t.diagnostic(`${plays} plays, ${ends} ends`)
  })

  test('and was to give a subscription its fail topic has done it or not, and is finished by the same again', async t => {
    const { plays, ends } = await exploreOperators({
      before: running,
      acts: { subscribes },
      failures: 1,
      judge: async ({ core }) => {
        await subscribes(core)
        assert.ok(await judgeOneOrTheOther(core, wantedOfRunning))
      },
    })
    t.diagnostic(`${plays} plays, ${ends} ends`)
  })

  test('and was to unsubscribe is finished by the same again, or by a new subscription, which begins at now', async t => {
    for (const repeat of [unsubscribes, subscribes]) {
      const { plays, ends } = await exploreOperators({
        before: running,
        acts: { unsubscribes },
        failures: 1,
        judge: async ({ core }) => {
          const wasEnded = (await read(core.store)).subscriptions.length === 0
          await repeat(core)
          const isOld = (queueId: number) => queueId <= 2 && repeat === subscribes && !wasEnded
          await judgeOneOrTheOther(core, queueId => [isOld(queueId) ? 5 : newest])
        },
      })
      t.diagnostic(`${plays} plays, ${ends} ends`)
    }
  })
})
