import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { deleteGroup } from '../../core/admin/groups.ts'
import { subscribe } from '../../core/admin/subscriptions.ts'
import { registerConsumerGroup } from '../../core/client/register-group.ts'
import type { Core } from '../../core/core.ts'
import type { GroupMode } from '../../core/model.ts'
import { PmqError } from '../../core/protocol/errors.ts'
import { consumerOf, groupOf, queueOf, topicOf } from '../store/contract.ts'
import { groupName, nowMs, topicName } from './groups.ts'
import { exploreOperators, type OperatorScene } from './operators.ts'

/** A topic of one queue, a group that subscribes to it or not, and a consumer that has not joined. */
const apart = (mode: GroupMode, isSubscribed: boolean) => async (core: Core) => {
  await core.store.createTopic(topicOf(topicName), [queueOf(topicName, 1)])
  await core.store.createGroup(groupOf(groupName, { mode }))
  await core.store.registerConsumer(consumerOf(1, 'consumer-1', { heartbeatAtMs: nowMs }))
  if (isSubscribed) await subscribe(core, groupName, topicName, {})
  await core.store.takeIds('queue', 10)
}

/** What the other has done may be in the way of it. */
const unlessRefused = (work: Promise<unknown>) =>
  work.catch(error => {
    if (!(error instanceof PmqError)) throw error
  })
const removes = (core: Core) => unlessRefused(deleteGroup(core, groupName))
const subscribes = (core: Core) => unlessRefused(subscribe(core, groupName, topicName, {}))
const joins = (core: Core) =>
  registerConsumerGroup(core, { consumerId: 1, consumerGroupNames: { [groupName]: [topicName] } })

const scenes: Record<string, Pick<OperatorScene, 'before' | 'acts'>> = {
  'while a consumer joins': { before: apart('balanced', true), acts: { removes, joins } },
  'while a consumer joins, and it broadcasts': { before: apart('broadcast', true), acts: { removes, joins } },
  'while it is subscribed to a topic': { before: apart('balanced', false), acts: { removes, subscribes } },
}

describe('a group that is removed', () => {
  for (const [name, scene] of Object.entries(scenes)) {
    test(`${name} stays, or leaves nothing to a group of its name`, async () => {
      let removals = 0
      await exploreOperators({
        ...scene,
        async judge({ core: { store } }) {
          const isThere = (await store.readGroup(groupName)) !== undefined
          if (isThere) return
          removals++
          await store.createGroup(groupOf(groupName))
          const heir = await store.readGroup(groupName)
          const { members = [], subscriptions = [], offsets = [], copies = [] } = heir ?? {}
          assert.deepEqual([members, subscriptions, offsets, copies], [[], [], [], []])
          assert.deepEqual((await store.readTopic(topicName))?.groupNames, [])
        },
      })
      assert.ok(removals > 0)
    })
  }
})
