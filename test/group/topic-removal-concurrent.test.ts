import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { addQueues } from '../../core/admin/queues.ts'
import { removeTopic } from '../../core/admin/remove-topic.ts'
import { subscribe, unsubscribe } from '../../core/admin/subscriptions.ts'
import { createTopic } from '../../core/admin/topics.ts'
import type { Core } from '../../core/core.ts'
import { PmqError } from '../../core/protocol/errors.ts'
import { groupOf, queueOf, topicOf } from '../store/contract.ts'
import { groupName, nowMs, topicName } from './groups.ts'
import { exploreOperators, type OperatorScene } from './operators.ts'

/** A topic of two queues, and a group that subscribes to it or not. */
const apart = (isSubscribed: boolean) => async (core: Core) => {
  await core.store.takeIds('queue', 10)
  await core.store.createTopic(
    topicOf(topicName),
    [1, 2].map(queueId => queueOf(topicName, queueId)),
  )
  await core.store.createGroup(groupOf(groupName))
  if (isSubscribed) await subscribe(core, groupName, topicName, {})
}

/** What the other has done may be in the way of it. */
const unlessRefused = (work: Promise<unknown>) =>
  work.catch(error => {
    if (!(error instanceof PmqError)) throw error
  })
const removes = (core: Core) => unlessRefused(removeTopic(core, topicName))
const subscribes = (core: Core) => unlessRefused(subscribe(core, groupName, topicName, {}))
const unsubscribes = (core: Core) => unlessRefused(unsubscribe(core, groupName, topicName))
const adds = (core: Core) => unlessRefused(addQueues(core, topicName, { count: 1 }))
const creates = (core: Core) => unlessRefused(createTopic(core, { name: topicName, queues: 2, retentionMs: 3_600_000 }))

/** It is there with its queues, and who subscribes has a place in each; or nothing is left of it. True: it is gone. */
async function judgeWhole({ store }: Core): Promise<boolean> {
  const topic = await store.readTopic(topicName)
  const { subscriptions = [], offsets = [] } = (await store.readGroup(groupName)) ?? {}
  const places = offsets.filter(offset => offset.topicName === topicName).map(({ queueId }) => queueId)
  if (topic) {
    assert.deepEqual(topic.groupNames, subscriptions.length > 0 ? [groupName] : [])
    const queueIds = topic.queues.map(({ queueId }) => queueId)
    assert.ok(queueIds.length >= 2)
    assert.deepEqual(
      places.sort((a, b) => a - b),
      subscriptions.length > 0 ? queueIds : [],
    )
    return false
  }
  assert.deepEqual([subscriptions, places], [[], []])
  const heir = topicOf(topicName, { topicId: 99, createdAtMs: nowMs + 60_000 })
  assert.equal(await store.createTopic(heir, [queueOf(topicName, 99)]), 'created')
  const read = await store.readTopic(topicName)
  assert.deepEqual([read?.queues.map(({ queueId }) => queueId), read?.groupNames], [[99], []])
  return true
}

const scenes: Record<string, Pick<OperatorScene, 'before' | 'acts' | 'interruptions'>> = {
  'while a group subscribes': { before: apart(false), acts: { removes, subscribes } },
  'while the last group unsubscribes': { before: apart(true), acts: { removes, unsubscribes } },
  'while the last group unsubscribes, and subscribes again': {
    before: apart(true),
    acts: { removes, unsubscribes, subscribes },
    interruptions: 1,
  },
  'while queues are added': { before: apart(false), acts: { removes, adds } },
  'while one of its name is created': { before: apart(false), acts: { removes, creates } },
  'by two at once': { before: apart(false), acts: { removes, again: removes } },
  'by two at once, while a group subscribes': {
    before: apart(false),
    acts: { removes, again: removes, subscribes },
    interruptions: 1,
  },
}

describe('a topic that is removed', () => {
  for (const [name, scene] of Object.entries(scenes)) {
    test(`${name} stays whole, or leaves nothing`, async t => {
      let removals = 0
      const { plays, ends } = await exploreOperators({
        ...scene,
        async judge({ core }) {
          if (await judgeWhole(core)) removals++
        },
      })
      assert.ok(removals > 0)
      t.diagnostic(`${plays} plays, ${ends} ends, ${removals} removals`)
    })
  }

  for (const isSubscribed of [false, true]) {
    test(`by a process that dies goes, or stays as it is, when that is repeated (${isSubscribed ? 'in use' : 'unused'})`, async () => {
      await exploreOperators({
        before: apart(isSubscribed),
        acts: { removes },
        failures: 1,
        async judge({ core }) {
          await removes(core)
          assert.equal(await judgeWhole(core), !isSubscribed)
          if (isSubscribed) await addQueues(core, topicName, { count: 1 })
        },
      })
    })
  }
})

describe('queues that two add at once', () => {
  test('are as many as a topic may have, and no more', async () => {
    const before = async (core: Core) => {
      await core.store.createTopic(topicOf(topicName), [queueOf(topicName, 1)])
      for (let first = 2; first < 999; first += 90) {
        const ids = Array.from({ length: Math.min(90, 999 - first) }, (_, i) => first + i)
        await core.store.addQueues(
          topicName,
          ids.map(queueId => queueOf(topicName, queueId)),
        )
      }
    }
    const addsTwo = (core: Core) => unlessRefused(addQueues(core, topicName, { count: 2 }))
    await exploreOperators({
      before,
      acts: { addsTwo, others: addsTwo },
      judge: async ({ core }) => assert.equal((await core.store.readTopic(topicName))?.queues.length, 1_000),
    })
  })
})
