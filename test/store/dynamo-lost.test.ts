import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { type Clock, systemClock } from '../../core/protocol/clock.ts'
import { type Store, StoreError } from '../../core/store.ts'
import { openTestStore, type TestStore } from '../support/dynamo-store.ts'
import { dynoxide, type RunningEngine } from '../support/engines.ts'
import { consumerOf, groupOf, memberOf, offsetOf, queueOf, subscriptionOf, topicOf } from './contract.ts'

const engine = dynoxide()

/** Where the tests begin: a claimed group with three queues, of which the third is claimed, and two newcomers. */
const groupName = 'orders-group'
const topicName = 'orders'
const group = groupOf(groupName, { mode: 'claimed' })
const copy = groupOf(`${groupName}_blue`, { origin: { groupName, subEnv: 'blue' } })
const idle = groupOf('idle')
const place = { groupName, queueOffsetId: 1 }
const claimed = { groupName, queueOffsetId: 3 }
const claim = { ...place, expectedOffsetVersion: 0, claimant: 'ann', nowMs: 50, untilMs: 100 }
const open = { allowedIps: [], deniedIps: [], maxConsumers: 2 }

async function prepare(store: Store) {
  await store.createTopic(
    topicOf(topicName),
    [1, 2, 3].map(queueId => queueOf(topicName, queueId)),
  )
  await store.setReadOnly(topicName, 2, 1)
  await store.createGroup(group)
  await store.createGroup(idle)
  for (const queueId of [1, 2, 3]) await store.addQueueOffset(offsetOf(groupName, queueId))
  await store.createSubscription(subscriptionOf(groupName, 'bills'))
  await store.claimQueue({ ...claim, ...claimed })
  await store.registerConsumer(consumerOf(1, 'c1'))
  await store.registerConsumer(consumerOf(2, 'c2'))
  await store.joinGroup(memberOf(groupName, 2, { joinedAtMs: 5 }))
}

type Case = {
  name: string
  act: (store: Store) => Promise<unknown>
  /** What it answers. */
  done: string
  /** What it answers when it is called again, for its caller has not heard of the first time. Absent: the store repeats it. */
  again?: string
}

const cases: Case[] = [
  { name: 'setReadOnly', act: store => store.setReadOnly(topicName, 1, 5), done: 'set' },
  { name: 'removeQueue', act: store => store.removeQueue(topicName, 2), done: 'removed', again: 'unknown_queue' },
  { name: 'createGroup', act: store => store.createGroup(copy), done: 'created', again: 'exists' },
  { name: 'updateGroup', act: store => store.updateGroup(groupName, open), done: 'updated' },
  { name: 'removeGroup', act: store => store.removeGroup(idle), done: 'removed', again: 'unknown_group' },
  {
    name: 'createSubscription',
    act: store => store.createSubscription(subscriptionOf(groupName, topicName)),
    done: 'created',
    again: 'exists',
  },
  {
    name: 'removeSubscription',
    act: store => store.removeSubscription(groupName, 'bills'),
    done: 'removed',
    again: 'unknown_subscription',
  },
  {
    name: 'addQueueOffset',
    act: store => store.addQueueOffset(offsetOf(groupName, 4)),
    done: 'created',
    again: 'exists',
  },
  {
    name: 'removeQueueOffset',
    act: store => store.removeQueueOffset(offsetOf(groupName, 1), 'unsubscribed'),
    done: 'removed',
  },
  { name: 'claimQueue', act: store => store.claimQueue(claim), done: 'claimed', again: 'conflict' },
  {
    name: 'renewClaim',
    act: store => store.renewClaim({ ...claimed, offsetVersion: 1, untilMs: 400 }),
    done: 'renewed',
  },
  {
    name: 'commitOffset that releases a claim',
    act: store => store.commitOffset({ ...claimed, offsetVersion: 1, offset: 7, release: true, nowMs: 60 }),
    done: 'advanced',
    again: 'fenced',
  },
  { name: 'resetOffset', act: store => store.resetOffset(claimed, 3), done: 'reset' },
  { name: 'setStopped', act: store => store.setStopped(place, true), done: 'set' },
  { name: 'joinGroup', act: store => store.joinGroup(memberOf(groupName, 1)), done: 'joined' },
  { name: 'leaveGroup', act: store => store.leaveGroup(groupName, 2), done: 'left', again: 'not_a_member' },
]

const outcomeOf = (answer: unknown) =>
  typeof answer === 'object' && answer !== null && 'outcome' in answer ? answer.outcome : answer

const unavailable = (error: unknown) => error instanceof StoreError && error.kind === 'unavailable'

describe('an operation under the faults of DynamoDB', { skip: engine.skip ?? false }, () => {
  let running: RunningEngine
  let opened: TestStore
  let store: Store
  let whileWaiting: (() => Promise<unknown>) | undefined
  /** Its waits pass at once, and what happens meanwhile happens once. */
  const clock: Clock = {
    ...systemClock,
    sleep: async () => {
      const happening = whileWaiting
      whileWaiting = undefined
      await happening?.()
    },
  }

  before(async () => {
    running = await engine.start()
  })
  after(() => running?.stop())
  beforeEach(async () => {
    whileWaiting = undefined
    opened = await openTestStore(running, { clock, faults: { seed: 1, clock } })
    store = opened.store
    await prepare(store)
  })
  afterEach(() => opened.close())

  for (const { name, act, done, again } of cases) {
    test(`${name} is repeated when it meets a transaction or a throttle, which did nothing`, async () => {
      opened.faults.next.push('conflict', 'throttle')
      assert.equal(outcomeOf(await act(store)), done)
    })

    if (again === undefined) {
      test(`${name} is repeated when its answer or its request is lost, since doing it twice does no harm`, async () => {
        opened.faults.next.push('loseAnswer', 'loseRequest')
        assert.equal(outcomeOf(await act(store)), done)
      })
      continue
    }
    test(`${name} is not repeated when its answer is lost, since it would take itself for another`, async () => {
      opened.faults.next.push('loseAnswer')
      const before = opened.faults.requests
      await assert.rejects(act(store), unavailable)
      assert.equal(opened.faults.requests, before + 1)
      assert.equal(outcomeOf(await act(store)), again)
    })

    test(`${name} is done by the next call when its request is lost`, async () => {
      opened.faults.next.push('loseRequest')
      await assert.rejects(act(store), unavailable)
      assert.equal(outcomeOf(await act(store)), done)
    })
  }

  const offsetAt = async (id: number) =>
    (await store.readGroup(groupName))?.offsets.find(offset => offset.queueOffsetId === id)

  test('a claim whose answer is lost holds the queue until its lease is over, and no longer', async () => {
    opened.faults.next.push('loseAnswer')
    await assert.rejects(store.claimQueue(claim), unavailable)
    assert.deepEqual((await offsetAt(1))?.claim, { claimant: 'ann', untilMs: 100 })
    const next = { ...claim, claimant: 'bob', expectedOffsetVersion: 1, untilMs: 200 }
    assert.equal((await store.claimQueue({ ...next, nowMs: 99 })).outcome, 'conflict')
    assert.equal((await store.claimQueue({ ...next, nowMs: 100 })).outcome, 'claimed')
  })

  test('a claim that another one overtakes while it waits to be repeated is refused', async () => {
    opened.faults.next.push('conflict')
    whileWaiting = () => store.claimQueue({ ...claim, claimant: 'bob' })
    assert.equal((await store.claimQueue(claim)).outcome, 'conflict')
    assert.equal((await offsetAt(1))?.claim?.claimant, 'bob')
  })

  test('a renewal whose answer is lost is fenced if the queue was given up before it is repeated', async () => {
    opened.faults.next.push('loseAnswer')
    const commit = { ...claimed, offsetVersion: 1, offset: 7, release: true, nowMs: 60 }
    whileWaiting = () => store.commitOffset(commit)
    assert.equal((await store.renewClaim({ ...claimed, offsetVersion: 1, untilMs: 400 })).outcome, 'fenced')
    assert.equal((await offsetAt(3))?.claim, undefined)
  })

  test('a release answers with where the queue is then, whatever was committed while it waited', async () => {
    const commit = { ...claimed, offsetVersion: 1, nowMs: 60 }
    await store.commitOffset({ ...commit, offset: 7, release: false })
    // It has learned that the queue is at 7, and is about to give it up.
    opened.faults.next.push('none', 'conflict')
    whileWaiting = () => store.commitOffset({ ...commit, offset: 9, release: false })
    const released = await store.commitOffset({ ...commit, offset: 5, release: true })
    assert.deepEqual(released, { outcome: 'unchanged', offset: 9, offsetVersion: 2, handedOver: false })
  })

  test('a copy whose maker hears nothing is recorded at its origin, once', async () => {
    opened.faults.next.push('loseAnswer')
    await assert.rejects(store.createGroup(copy), unavailable)
    await store.createGroup(copy)
    assert.deepEqual((await store.readGroup(groupName))?.copies, [{ copyName: copy.name, subEnv: 'blue' }])
  })

  test('settings that are replaced twice raise the versions twice, and are what was asked', async () => {
    const before = (await store.readGroup(groupName))?.group
    assert.ok(before)
    opened.faults.next.push('loseAnswer')
    await store.updateGroup(groupName, open)
    assert.deepEqual((await store.readGroup(groupName))?.group, {
      ...before,
      ...open,
      metaVersion: before.metaVersion + 2,
      version: before.version + 2,
      rebalanceAsked: before.rebalanceAsked + 2,
    })
  })

  test('a member that joins again by a repeat keeps when it joined first, and is no newcomer', async () => {
    opened.faults.next.push('loseAnswer')
    await store.joinGroup(memberOf(groupName, 1, { joinedAtMs: 7, instanceId: 'pod-0' }))
    opened.faults.next.push('loseAnswer')
    await store.joinGroup(memberOf(groupName, 1, { joinedAtMs: 9 }))
    const [first] = (await store.readGroup(groupName))?.members ?? []
    assert.deepEqual(first, memberOf(groupName, 1, { joinedAtMs: 7 }))
    assert.deepEqual(await store.listNewcomers(), [])
  })

  test('a consumer that registers by a repeat is a newcomer once, and not again if it has joined meanwhile', async () => {
    opened.faults.next.push('loseAnswer')
    await store.registerConsumer(consumerOf(3, 'c3'))
    assert.deepEqual(await store.listNewcomers(), [1, 3])
    opened.faults.next.push('loseAnswer')
    whileWaiting = () => store.joinGroup(memberOf(groupName, 4))
    await store.registerConsumer(consumerOf(4, 'c4'))
    assert.deepEqual(await store.listNewcomers(), [1, 3])
  })
})

describe('many queues of one group at once', { skip: engine.skip ?? false }, () => {
  test('do not stand in their own way, though DynamoDB refuses transactions that meet at an item', async () => {
    const running = await engine.start()
    const { store, faults, close } = await openTestStore(running, { faults: { seed: 1, meetAtItems: true } })
    try {
      const offsets = Array.from({ length: 25 }, (_, i) => offsetOf(groupName, i + 1, { consumerId: 1 }))
      const all = async (act: (offset: (typeof offsets)[number]) => Promise<unknown>) =>
        new Set((await Promise.all(offsets.map(act))).map(outcomeOf))
      await store.createGroup(group)
      assert.deepEqual(await all(offset => store.addQueueOffset(offset)), new Set(['created']))
      assert.deepEqual(await all(offset => store.setStopped(offset, true)), new Set(['set']))
      assert.deepEqual(await all(offset => store.resetOffset(offset, 5)), new Set(['reset']))
      const move = { expectedOffsetVersion: 1, expectedConsumerId: 1, expectedNextConsumerId: undefined, consumerId: 1 }
      const leaving = { nextConsumerId: 2, sinceMs: 1 }
      const leave = (queueOffsetId: number) =>
        store.moveQueue({ groupName, queueOffsetId, ...move, leaving, rbVersion: 1 })
      assert.deepEqual(await all(offset => leave(offset.queueOffsetId)), new Set(['moved']))
      const commit = { groupName, offsetVersion: 1, offset: 9, release: true, nowMs: 1 }
      const handOver = (queueOffsetId: number) => store.commitOffset({ ...commit, queueOffsetId })
      assert.deepEqual(await all(offset => handOver(offset.queueOffsetId)), new Set(['advanced']))
      assert.deepEqual(await all(offset => store.removeQueueOffset(offset, 'unsubscribed')), new Set(['removed']))
      assert.equal(faults.counts.conflict, 0)
    } finally {
      await close()
      await running.stop()
    }
  })
})
