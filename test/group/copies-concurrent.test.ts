import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { addQueues } from '../../core/admin/queues.ts'
import { subscribe, unsubscribe } from '../../core/admin/subscriptions.ts'
import { deRegister } from '../../core/client/deregister.ts'
import { registerConsumerGroup } from '../../core/client/register-group.ts'
import type { Core } from '../../core/core.ts'
import { kindOf } from '../../core/group/copy-names.ts'
import { rebalance } from '../../core/group/rebalance.ts'
import type { GroupMode, GroupSnapshot } from '../../core/model.ts'
import { consumerOf, groupOf, queueOf, topicOf } from '../store/contract.ts'
import { assertPlaces, groupName, nowMs, topicName } from './groups.ts'
import { type Ended, exploreOperators, newest, type OperatorScene, publishedLater } from './operators.ts'

const joins = (consumerId: number, subEnv?: string) => async (core: Core) => {
  const joining = { consumerId, ...(subEnv && { subEnv }), consumerGroupNames: { [groupName]: [topicName] } }
  const { suc, msg } = await registerConsumerGroup(core, joining)
  // It may have left already.
  if (!suc) assert.match(msg ?? '', /^ConsumerId_/)
}
const leaves = (consumerId: number) => (core: Core) => deRegister(core, { id: consumerId })
const subscribes = (core: Core) => subscribe(core, groupName, topicName, {})
const changesSettings = (core: Core) => subscribe(core, groupName, topicName, { threadSize: 9 })
/** There may be nothing to end yet. */
const unsubscribes = (core: Core) =>
  unsubscribe(core, groupName, topicName).catch(error => {
    if (error.code !== 'not_found') throw error
  })
const adds = (core: Core) => addQueues(core, topicName, { count: 1 })
const rebalances = (core: Core) => rebalance(core, groupName)

/** A topic of one queue, a group, and consumers 1 and 2, of which nobody has joined. */
const apart = (mode: GroupMode) => async (core: Core) => {
  const { store } = core
  await store.createTopic(topicOf(topicName), [queueOf(topicName, 1)])
  await store.createGroup(groupOf(groupName, { mode }))
  for (const id of [1, 2]) await store.registerConsumer(consumerOf(id, `consumer-${id}`, { heartbeatAtMs: nowMs }))
  await store.takeIds('queue', 10)
}

/** The same, where the group subscribes. */
const subscribed = (mode: GroupMode) => async (core: Core) => {
  await apart(mode)(core)
  await subscribes(core)
}

/** The same, where the group subscribes and consumer 1 has joined. */
const running =
  (mode: GroupMode, { subEnv, isSubscribed = true }: { subEnv?: string; isSubscribed?: boolean } = {}) =>
  async (core: Core) => {
    await (isSubscribed ? subscribed : apart)(mode)(core)
    await joins(1, subEnv)(core)
    await rebalances(core)
  }

type Expected = { places: (queueId: number) => number[]; members?: number[] }

/** The copies have what their origin has, one for each member, with a place in each queue; and nobody else has one. */
async function judgeCopies({ core: { store } }: Ended, expected: Expected) {
  const readKnown = async (name: string): Promise<GroupSnapshot> => {
    const snapshot = await store.readGroup(name)
    assert.ok(snapshot, `there is no group ${name}`)
    return snapshot
  }
  const origin = await readKnown(groupName)
  const copies = await Promise.all(origin.copies.map(({ copyName }) => readKnown(copyName)))
  for (const copy of copies) {
    const settings = ({ subscriptions }: GroupSnapshot) =>
      subscriptions.map(({ groupName: _group, failTopicId, ...subscription }) => {
        return { ...subscription, hasFailTopic: failTopicId !== undefined }
      })
    assert.deepEqual(settings(copy), settings(origin))
    await assertPlaces(store, copy)
    for (const { queueId, originTopicName, offset, consumerId } of copy.offsets) {
      // Fail topics are made with the copies, at whatever time.
      const places = originTopicName === undefined ? expected.places(queueId) : [newest, newest + publishedLater]
      assert.ok(places.includes(offset), `queue ${queueId} at ${offset}`)
      if (kindOf(copy.group) === 'consumer_copy') {
        assert.deepEqual(copy.group.origin, { groupName, consumerId })
      }
    }
  }
  if (origin.group.mode === 'broadcast') {
    const members = origin.members.map(member => member.consumerId)
    assert.deepEqual(
      origin.copies.map(({ consumerId }) => consumerId),
      members,
    )
    if (expected.members) assert.deepEqual(members, expected.members)
    for (const id of [1, 2].filter(each => !members.includes(each))) {
      assert.equal(await store.readGroup(`${groupName}~${id}`), undefined, `${id} has left something`)
    }
  }
}

const fromNowOn = (queueId: number) => [queueId === 1 ? newest : 0]
const judge =
  (expected: Partial<Expected> = {}): OperatorScene['judge'] =>
  ended =>
    judgeCopies(ended, { places: fromNowOn, ...expected })

const broadcast: Record<string, OperatorScene> = {
  'a consumer joins while the group subscribes': {
    before: apart('broadcast'),
    acts: { joins: joins(1), subscribes },
    judge: judge({ members: [1] }),
  },
  'a consumer joins while the group unsubscribes': {
    before: subscribed('broadcast'),
    acts: { joins: joins(2), unsubscribes },
    judge: judge({ members: [2] }),
  },
  'a consumer joins while its topic gets a queue': {
    before: subscribed('broadcast'),
    acts: { joins: joins(2), adds },
    judge: judge({ members: [2], places: queueId => (queueId === 1 ? [newest] : [0, newest]) }),
  },
  'a consumer joins and leaves': {
    before: subscribed('broadcast'),
    acts: { joins: joins(2), leaves: leaves(2) },
    judge: judge({ members: [] }),
  },
  'a consumer joins twice': {
    before: subscribed('broadcast'),
    acts: { joins: joins(2), again: joins(2) },
    judge: judge({ members: [2] }),
  },
  'a consumer joins while a rebalance runs': {
    before: subscribed('broadcast'),
    acts: { joins: joins(2), rebalances },
    judge: judge({ members: [2] }),
  },
  'a consumer leaves while the group subscribes': {
    before: running('broadcast', { isSubscribed: false }),
    acts: { leaves: leaves(1), subscribes },
    judge: judge({ members: [] }),
  },
  'the group subscribes while a rebalance runs, and loses nothing that comes then': {
    before: async core => {
      await running('broadcast', { isSubscribed: false })(core)
      await core.store.askRebalance(groupName)
    },
    acts: { subscribes, rebalances },
    publishAfter: 'subscribes',
    judge: judge(),
  },
  'settings change while a rebalance runs': {
    before: running('broadcast'),
    acts: { changesSettings, rebalances },
    judge: judge(),
  },
}

const subEnvironments: Record<string, OperatorScene> = {
  'its first consumer joins while the group subscribes': {
    before: apart('balanced'),
    acts: { joins: joins(1, 'dev'), subscribes },
    judge: judge(),
  },
  'its first consumers join at once': {
    before: apart('balanced'),
    acts: { joins: joins(1, 'dev'), other: joins(2, 'dev') },
    judge: judge(),
  },
  'its first consumer joins while the group unsubscribes': {
    before: subscribed('balanced'),
    acts: { joins: joins(2, 'dev'), unsubscribes },
    judge: judge(),
  },
  'the group subscribes while a rebalance runs, and loses nothing that comes then': {
    before: async core => {
      await running('balanced', { subEnv: 'dev', isSubscribed: false })(core)
      await core.store.askRebalance(groupName)
    },
    acts: { subscribes, rebalances },
    publishAfter: 'subscribes',
    judge: judge(),
  },
  'settings change while a rebalance runs': {
    before: async core => {
      await running('balanced', { subEnv: 'dev' })(core)
      await core.store.askRebalance(groupName)
    },
    acts: { changesSettings, rebalances },
    judge: judge(),
  },
}

describe('a broadcast group, in any order of the steps', () => {
  for (const [name, scene] of Object.entries(broadcast)) {
    test(`gives each member a copy in line with it, and leaves none behind: ${name}`, async t => {
      const { plays, ends } = await exploreOperators(scene)
      t.diagnostic(`${plays} plays, ${ends} ends`)
    })
  }

  const dying: Record<string, [(core: Core) => Promise<unknown>, number[] | undefined]> = {
    'a consumer that joins': [joins(2), undefined],
    'a consumer that leaves': [leaves(1), undefined],
    'the group unsubscribes': [unsubscribes, [1]],
    'the topic gets a queue': [adds, [1]],
    'settings change': [changesSettings, [1]],
  }
  for (const [name, [act, members]] of Object.entries(dying)) {
    test(`is in order after the next rebalance, wherever the process died: ${name}`, async t => {
      const { plays, ends } = await exploreOperators({
        before: running('broadcast'),
        acts: { act },
        failures: 1,
        judge: judge({ ...(members && { members }) }),
      })
      t.diagnostic(`${plays} plays, ${ends} ends`)
    })
  }
})

describe("a sub-environment's copy of a group, in any order of the steps", () => {
  for (const [name, scene] of Object.entries(subEnvironments)) {
    test(`is in line with the group: ${name}`, async t => {
      const { plays, ends } = await exploreOperators(scene)
      t.diagnostic(`${plays} plays, ${ends} ends`)
    })
  }
})
