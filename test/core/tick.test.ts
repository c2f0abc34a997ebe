import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { hashKey } from '../../core/log/placement.ts'
import type { Store } from '../../core/store.ts'
import { emptyReport, type TickReport } from '../../core/tick/report.ts'
import { tick } from '../../core/tick/tick.ts'
import {
  assertSettled,
  groupName,
  join,
  lookedBefore,
  makeGroup,
  nowMs,
  openRegistry,
  ownersOf,
  type Registry,
  read,
  topicName,
  watchGroup,
} from '../group/groups.ts'
import { createContainer, hourMs, makeTopic, send } from '../log/containers.ts'
import { consumerOf, groupOf, memberOf, offsetOf, subscriptionOf, topicOf } from '../store/contract.ts'
import { createManualClock, type ManualClock } from '../support/manual-clock.ts'
import { explore } from './explore.ts'
import { intercept, scriptStore } from './scripted-store.ts'

/** What each tick reads, however many groups and topics there are. */
const lists = [
  ...['listAlarms', 'listAwakeGroups', 'listGroups', 'listGroupsWithTargets', 'listNewcomers', 'listTopics'],
  // Of those of alarms.
  'readTargets',
]

describe('a tick', () => {
  let registry: Registry
  let store: Store
  let clock: ManualClock
  beforeEach(() => {
    registry = openRegistry()
    store = registry.store
    clock = createManualClock(nowMs)
  })
  afterEach(() => registry.close())

  const run = async (through = store) => tick(await lookedBefore(createContainer(through, { clock }), store))
  const awake = async () => (await store.listAwakeGroups()).map(group => group.groupName)
  const operationsOf = async () => {
    const { store: watched, calls } = scriptStore(store)
    await run(watched)
    return calls.map(call => call.operation).toSorted()
  }

  test('finishes a rebalance that was asked for', async () => {
    await makeGroup(store, { owners: [1, 1], members: [1, 2] })
    const report = await run()
    assert.deepEqual(report, { ...emptyReport(), groups: 1 })
    assertSettled(await read(store))
  })

  test('reports the topics that no member of a running group has a handler for', async () => {
    await makeGroup(store, { owners: [0, 0], members: [] })
    await join(store, 1, ['bills'])
    const { unhandled } = await run()
    assert.deepEqual(unhandled, [{ groupName, topicNames: [topicName] }])
    await join(store, 2)
    assert.deepEqual((await run()).unhandled, [])
  })

  test('reports within a quarter of an hour the queues with messages that nobody gets on with, and then each minute', async () => {
    const topic = await makeTopic(store, 2, 24 * hourMs)
    const queueId = topic.queueIds[0] ?? 0
    await store.createGroup(groupOf(groupName))
    await store.createSubscription(subscriptionOf(groupName, topic.name))
    for (const id of topic.queueIds) {
      await store.addQueueOffset({ ...offsetOf(groupName, id), topicName: topic.name })
    }
    await join(store, 1, [topic.name])
    const container = createContainer(store, { clock })
    await send(container, topic.name, ['a'], { toQueue: queueId })
    const reports: TickReport['stalled'][] = []
    for (let minute = 0; minute < 60; minute++) {
      clock.step(60_000)
      await store.heartbeat(1, clock.now())
      reports.push((await run()).stalled)
    }
    const found = reports.filter(stalled => stalled.length > 0)
    assert.deepEqual(found.at(-1), [{ groupName, topicName: topic.name, queueId }])
    const first = reports.findIndex(stalled => stalled.length > 0)
    assert.ok(first >= 10 && first <= 26, `${first} minutes`)
    assert.equal(found.length, 60 - first)
    const { offsetVersion } = (await read(store)).offsets.find(offset => offset.queueId === queueId) ?? {}
    const commit = { groupName, queueOffsetId: queueId, offsetVersion: offsetVersion ?? 0, offset: 1, release: false }
    assert.equal((await store.commitOffset({ ...commit, nowMs: clock.now() })).outcome, 'advanced')
    for (let minute = 0; minute < 15; minute++) {
      clock.step(60_000)
      await store.heartbeat(1, clock.now())
      assert.deepEqual((await run()).stalled, [])
    }
  })

  test('reports nothing of a group that nobody runs', async () => {
    await makeGroup(store, { owners: [1, 1], members: [] })
    assert.deepEqual((await run()).unhandled, [])
  })

  test('gives up dead members, and their queues to the living', async () => {
    await makeGroup(store, { owners: [1, 2], members: [1, 2] })
    clock.step(30_000)
    await store.heartbeat(1, clock.now())
    clock.step(1)
    await run()
    assert.deepEqual(ownersOf(await read(store)), [1, 1])
    assertSettled(await read(store))
  })

  test('reads nothing of a group that sleeps', async () => {
    await store.createGroup(groupOf(groupName))
    assert.deepEqual(await operationsOf(), lists)
  })

  test('writes nothing for a group whose members live and have what they should', async () => {
    await makeGroup(store, { owners: [1, 2], members: [1, 2] })
    await run()
    const reads = [...lists, 'readConsumers', 'readGroup'].toSorted()
    assert.deepEqual(await operationsOf(), reads)
  })

  test('lets a group sleep once its members are gone and nothing is asked, and a join or a subscription wakes it', async () => {
    await makeGroup(store, { owners: [1], members: [1] })
    await run()
    assert.deepEqual(await awake(), [groupName])
    await store.leaveGroup(groupName, 1)
    await store.askRebalance(groupName)
    await run()
    assert.deepEqual(await awake(), [])
    await store.createTopic(topicOf('bills'), [])
    await store.createSubscription(subscriptionOf(groupName, 'bills'))
    assert.deepEqual(await awake(), [groupName])
    await run()
    assert.deepEqual(await awake(), [])
    await join(store, 2)
    assert.deepEqual(await awake(), [groupName])
    await run()
    assertSettled(await read(store))
    assert.deepEqual(await awake(), [groupName])
  })

  test('does not let a group sleep that is asked something at the last moment', async () => {
    await makeGroup(store, { owners: [0], members: [] })
    await store.registerConsumer(consumerOf(1, 'consumer-1', { heartbeatAtMs: nowMs }))
    const { store: scripted, next } = scriptStore(store)
    next('sleepGroup', async call => {
      await store.joinGroup({ ...memberOf(groupName, 1), topicNames: [topicName] })
      await store.askRebalance(groupName)
      return call.run()
    })
    await run(scripted)
    assert.deepEqual(await awake(), [groupName])
    await run()
    assertSettled(await read(store))
  })

  test('gives every group its turn though one of them cannot be looked after', async () => {
    await makeGroup(store, { owners: [1, 1], members: [1, 2] })
    for (const name of ['a-first', 'z-last']) {
      await store.createGroup(groupOf(name))
      await store.askRebalance(name)
    }
    const broken = intercept(store, call => {
      if (call.operation === 'readGroup' && call.args[0] === 'a-first') throw new TypeError('a defect')
      return call.run()
    })
    const { groups, failed } = await run(broken)
    assert.equal(groups, 3)
    assert.deepEqual(
      failed.map(({ what }) => what),
      ['group a-first'],
    )
    assertSettled(await read(store))
    assert.deepEqual((await awake()).toSorted(), ['a-first', groupName])
  })

  test('checkpoints topics though the groups cannot be read, and looks after groups though the topics cannot', async () => {
    await makeGroup(store, { owners: [1, 1], members: [1, 2] })
    const topic = await makeTopic(store, 1)
    await send(createContainer(store, { clock }), topic.name, ['a', 'b'])
    goToMinuteOf(clock, topic.name)
    const fails = (operation: string) =>
      intercept(store, call => {
        if (call.operation === operation) throw new TypeError('a defect')
        return call.run()
      })
    assert.deepEqual(
      (await run(fails('listAwakeGroups'))).failed.map(({ what }) => what),
      ['groups'],
    )
    assert.equal((await store.readTopic(topic.name))?.queues[0]?.checkpoint, 3)
    assert.deepEqual(
      (await run(fails('listTopics'))).failed.map(({ what }) => what),
      ['topics'],
    )
    for (const consumerId of [1, 2]) assert.equal(await store.heartbeat(consumerId, clock.now()), undefined)
  })

  test('checkpoints each topic once an hour, at a minute of its own', async () => {
    const topics = await Promise.all(Array.from({ length: 12 }, () => makeTopic(store, 1)))
    const container = createContainer(store, { clock })
    for (const topic of topics) await send(container, topic.name, ['a'])
    const { store: watched, calls } = scriptStore(store)
    for (let minute = 0; minute < 60; minute++) {
      await run(watched)
      clock.step(60_000)
    }
    const checkpointed = calls.filter(call => call.operation === 'checkpointQueue').map(call => call.args[0])
    assert.deepEqual(checkpointed.toSorted(), topics.map(({ name }) => name).toSorted())
    assert.equal(calls.filter(call => call.operation === 'readTopic').length, 12)
    const minutes = new Set(topics.map(({ name }) => hashKey(name) % 60))
    assert.ok(minutes.size > 6, `all topics have the same few minutes: ${[...minutes]}`)
  })

  test('goes on with the other topics where one cannot be checkpointed', async () => {
    const topic = await makeTopic(store, 2)
    await send(createContainer(store, { clock }), topic.name, ['a'], { toQueue: topic.queueIds[0] ?? 0 })
    goToMinuteOf(clock, topic.name)
    const { store: scripted, next } = scriptStore(store)
    next('checkpointQueue', 'lost request')
    const { topics, failed } = await run(scripted)
    assert.equal(topics, 1)
    assert.deepEqual(
      failed.map(({ what }) => what),
      [`topic ${topic.name}`],
    )
    assert.deepEqual((await run()).failed, [])
    assert.equal((await store.readTopic(topic.name))?.queues[0]?.checkpoint, 2)
  })

  test('may run twice at once, in any order of the operations', async t => {
    await makeGroup(store, { owners: [2], members: [1, 2] })
    await store.heartbeat(2, 0)
    registry.keep()
    const { plays, ends } = await explore(stage => {
      registry.reset()
      const { seen, watch } = watchGroup(store)
      const through = (mind: string) =>
        intercept(store, call => {
          // Nothing here changes what these say.
          if (lists.includes(call.operation) && call.operation !== 'listAwakeGroups') return call.run()
          return stage.step(mind, `${call.operation} ${JSON.stringify(call.args)}`, () => ({ done: () => watch(call) }))
        })
      return {
        actors: { one: () => run(through('one')), other: () => run(through('other')) },
        world: () => [registry.dump(), seen.isUntold],
        async judge({ one, other }) {
          assert.deepEqual(
            [one, other],
            [1, 2].map(() => ({ ...emptyReport(), groups: 1 })),
          )
          const after = await read(store)
          assertSettled(after)
          assert.deepEqual(ownersOf(after), [1])
          assert.ok(!seen.isUntold)
          assert.deepEqual(await awake(), [groupName])
        },
      }
    })
    t.diagnostic(`${plays} plays, ${ends} ends`)
  })
})

/** Lets time pass until it is the topic's minute of the hour. */
function goToMinuteOf(clock: ManualClock, name: string): void {
  while (Math.floor(clock.now() / 60_000) % 60 !== hashKey(name) % 60) clock.step(60_000)
}
