import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Core } from '../../core/core.ts'
import { groupHasChanged } from '../../core/core.ts'
import type { Notice } from '../../core/notices.ts'
import { tick } from '../../core/tick/tick.ts'
import { base, createTopic, register } from '../wire/scene.ts'
import { openService, type Service } from '../wire/service.ts'
import { intercept } from './scripted-store.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

describe('the lag of a group', () => {
  let service: Service
  let told: Notice[]
  let core: Core
  beforeEach(() => open())
  afterEach(() => service.close())

  function open(through?: Parameters<typeof openService>[0]) {
    service = openService(through)
    core = service.core
    told = []
    core.bus.tell = async notice => void told.push(notice)
    core.bus.groupChanged = async name => groupHasChanged(core, name)
  }
  /** Ticks, one a minute. */
  async function minutes(count: number) {
    const reports = []
    for (let i = 0; i < count; i++) {
      service.clock.advance(minuteMs)
      reports.push(await tick(core))
    }
    for (const { failed } of reports) assert.deepEqual(failed, [])
    return reports
  }
  async function setUp(settings: object = {}, { queues = 2, retentionMs = 24 * hourMs, groupName = 'billing' } = {}) {
    await service.call('createTopic', { name: 'orders', queues, retentionMs })
    await service.call('createGroup', { name: groupName })
    await service.call('subscribe', settings, { groupName, topicName: 'orders' })
    const { topicQueues } = await service.call('getTopicQueueIds', { topicNames: ['orders'] })
    return topicQueues?.orders ?? []
  }
  async function publish(queueIds: number[], count = 1) {
    const msgs = queueIds.flatMap(queueId =>
      Array.from({ length: count }, () => ({ body: 'm', partitionInfo: { queueId } })),
    )
    for (let at = 0; at < msgs.length; at += 1_000) {
      const { suc, msg } = await service.call('publish', { topicName: 'orders', msgs: msgs.slice(at, at + 1_000) })
      assert.equal(suc, true, msg)
    }
  }
  const catchUp = (of: unknown = 'all', to: unknown = 'end') =>
    service.call('resetOffsets', { of, to }, { groupName: 'billing' })
  const alarms = () => told.filter(({ type }) => type.startsWith('Alarm')) as Extract<Notice, { alarm: unknown }>[]
  const openAlarms = async () => (await service.call('listAlarms', {})).alarms

  test('is measured of each topic, by its messages and the age of the oldest, whether anybody consumes or not', async () => {
    const queueIds = await setUp()
    await publish(queueIds, 3)
    const reports = await minutes(20)
    const lags = reports.flatMap(report => report.lags.filter(({ isFailTopic }) => !isFailTopic))
    assert.partialDeepStrictEqual(lags.at(-1), {
      groupName: 'billing',
      topicName: 'orders',
      isFailTopic: false,
      messages: 6,
      retentionMs: 24 * hourMs,
      lost: 0,
    })
    const { oldestAgeMs = 0, retentionLeftMs = 0 } = lags.at(-1) ?? {}
    assert.ok(oldestAgeMs >= 2 * minuteMs && oldestAgeMs <= 20 * minuteMs)
    assert.equal(oldestAgeMs + retentionLeftMs, 24 * hourMs)
  })

  test('is looked at each minute while something happens, and else less and less often', async () => {
    const queueIds = await setUp()
    await minutes(120)
    const lookedIn = async (count: number, each: () => Promise<unknown> = async () => undefined) => {
      let looked = 0
      for (let i = 0; i < count; i++) {
        await each()
        looked += (await minutes(1))[0]?.looked ?? 0
      }
      return looked
    }
    const idle = await lookedIn(240)
    assert.ok(idle >= 3 && idle <= 5, `${idle} looks in four idle hours`)
    await lookedIn(70, () => publish(queueIds))
    const busy = await lookedIn(30, () => publish(queueIds))
    assert.ok(busy >= 28, `${busy} looks in half an hour of use`)
  })

  test('raises one alarm when it is above what the subscription allows, and clears it below four fifths of that', async () => {
    const queueIds = await setUp({ maxLag: 100 }, { queues: 50 })
    await publish(queueIds, 2)
    await minutes(70)
    assert.deepEqual(alarms(), [])
    await publish(queueIds, 2)
    await minutes(70)
    const [raised, ...more] = alarms()
    assert.deepEqual(more, [])
    assert.partialDeepStrictEqual(raised, {
      type: 'AlarmRaised',
      alarm: { kind: 'lag', groupName: 'billing', topicName: 'orders', facts: { messages: 200 } },
    })
    assert.match(
      raised?.text ?? '',
      /^Group billing is behind in topic orders: 200 messages wait, the oldest for \d+ s$/,
    )
    assert.partialDeepStrictEqual(await openAlarms(), [{ kind: 'lag', groupName: 'billing', text: raised?.text }])
    // Between the two bounds nothing is said, however often it is crossed.
    await catchUp()
    await publish(queueIds, 2)
    await publish(queueIds.slice(0, 10), 1)
    await minutes(10)
    await catchUp()
    await publish(queueIds.slice(0, 45), 2)
    await minutes(10)
    assert.equal(alarms().length, 1)
    await catchUp()
    await minutes(3)
    assert.deepEqual(
      alarms().map(({ type }) => type),
      ['AlarmRaised', 'AlarmCleared'],
    )
    assert.deepEqual(await openAlarms(), [])
    assert.equal((await service.call('listAlarms', { state: 'all' })).alarms.length, 1)
    await publish(queueIds, 10)
    await minutes(70)
    assert.equal(alarms().length, 3)
  })

  test('raises an alarm when a message waits for longer than is allowed, by the topic where the subscription says nothing', async () => {
    const queueIds = await setUp()
    await service.call('updateTopic', { maxLagSeconds: 1_800 }, { topicName: 'orders' })
    await publish(queueIds.slice(0, 1))
    await minutes(29)
    assert.deepEqual(alarms(), [])
    await minutes(61)
    assert.equal(alarms().length, 1)
    await service.call('subscribe', { maxLagSeconds: 86_400 }, { groupName: 'billing', topicName: 'orders' })
    await minutes(3)
    assert.deepEqual(
      alarms().map(({ type }) => type),
      ['AlarmRaised', 'AlarmCleared'],
    )
    const view = await service.call('getTopicView', undefined, { topicName: 'orders' })
    assert.equal(view.maxLagSeconds, 1_800)
  })

  test('raises an alarm before unread messages are past retention, and says how many were', async () => {
    const queueIds = await setUp({}, { retentionMs: 10 * hourMs })
    await publish(queueIds.slice(0, 1), 5)
    await minutes(7.5 * 60)
    assert.deepEqual(alarms(), [])
    await minutes(2 * 60)
    assert.partialDeepStrictEqual(alarms(), [
      { type: 'AlarmRaised', alarm: { kind: 'retention', topicName: 'orders' } },
    ])
    await publish(queueIds.slice(0, 1), 2)
    await minutes(60)
    const { queues } = await service.call('getGroup', undefined, { groupName: 'billing' })
    assert.equal(queues.find(({ queueId }) => queueId === queueIds[0])?.lost, 5)
    assert.equal(alarms().length, 1)
    await catchUp({ queueId: queueIds[0] }, { offset: 5 })
    await minutes(3)
    assert.deepEqual(
      alarms().map(({ type }) => type),
      ['AlarmRaised', 'AlarmCleared'],
    )
  })

  test('raises an alarm when nobody gets on with it though the group is running', async () => {
    const queueIds = await setUp({}, { queues: 3 })
    const consumerId = await register(service, 'idle')
    await service.call('registerConsumerGroup', { ...base, consumerId, consumerGroupNames: { billing: ['orders'] } })
    await publish(queueIds)
    for (let i = 0; i < 26; i++) {
      await minutes(1)
      await service.call('heartbeat', { ...base, consumerId })
    }
    const stalled = () => alarms().filter(({ alarm }) => (alarm as { kind: string }).kind === 'stalled')
    assert.partialDeepStrictEqual(stalled(), [
      { type: 'AlarmRaised', alarm: { topicName: 'orders', facts: { queues: 3 } } },
    ])
    assert.match(
      stalled()[0]?.text ?? '',
      /^Group billing does not get on with 3 queues of topic orders: 3 messages wait/,
    )
    await catchUp()
    await minutes(2)
    assert.deepEqual(
      stalled().map(({ type }) => type),
      ['AlarmRaised', 'AlarmCleared'],
    )
  })

  test('is no alarm any more when the subscription or the group is gone', async () => {
    const queueIds = await setUp({ maxLag: 1 })
    await service.call('createGroup', { name: 'audit' })
    await service.call('subscribe', { maxLag: 1 }, { groupName: 'audit', topicName: 'orders' })
    await publish(queueIds, 9)
    await minutes(70)
    assert.equal((await openAlarms()).length, 2)
    await service.call('unsubscribe', undefined, { groupName: 'billing', topicName: 'orders' })
    await service.call('removeGroup', undefined, { groupName: 'audit' })
    await minutes(3)
    assert.deepEqual(await openAlarms(), [])
    assert.equal(alarms().length, 4)
  })

  test('raises one alarm where several ticks look at once', async () => {
    const queueIds = await setUp({ maxLag: 1 })
    await publish(queueIds, 9)
    for (let i = 0; i < 70; i++) {
      service.clock.advance(minuteMs)
      await Promise.all([tick(core), tick(core), tick(core)])
    }
    assert.equal(alarms().length, 1)
  })

  test('has its alarm told by a later tick where the one that raised it died before it could', async () => {
    const queueIds = await setUp({ maxLag: 1 })
    await publish(queueIds, 9)
    core.bus.tell = async () => {
      throw new Error('the process ends here')
    }
    for (let i = 0; i < 70 && (await openAlarms()).length === 0; i++) {
      service.clock.advance(minuteMs)
      await tick(core)
    }
    core.bus.tell = async notice => void told.push(notice)
    await minutes(5)
    assert.equal(alarms().length, 1)
  })

  test('is no obstacle to that of others where it cannot be read', async () => {
    await service.close()
    const broken = { name: '' }
    open({
      through: store =>
        intercept(store, call => {
          if (call.operation === 'readGroup' && call.args[0] === broken.name) throw new TypeError('a defect')
          return call.run()
        }),
    })
    const queueIds = await setUp({ maxLag: 1 })
    for (const name of ['a', 'z']) await service.call('createGroup', { name })
    await publish(queueIds, 9)
    broken.name = 'a'
    const failed = new Set<string>()
    for (let i = 0; i < 70; i++) {
      service.clock.advance(minuteMs)
      for (const { what } of (await tick(core)).failed) failed.add(what)
    }
    assert.ok([...failed].some(what => what.endsWith(' a')))
    assert.equal(alarms().length, 1)
  })

  test('is left to the next tick where the time of one is over, and all get their turn', async () => {
    for (let i = 0; i < 60; i++) await service.call('createGroup', { name: `g${i}` })
    const none = await tick(core, 0)
    assert.equal(none.looked, 0)
    let looked = 0
    for (let i = 0; i < 30; i++) {
      service.clock.advance(minuteMs)
      looked += (await tick(core)).looked
    }
    assert.ok(looked >= 60, `${looked}`)
  })
})

describe('a group with targets', () => {
  const url = 'https://example.com/hook'
  test('is told again of what waits, where it was not told, or nobody came', async () => {
    const service = openService()
    const { core } = service
    const told: Notice[] = []
    const [queueId = 0] = await createTopic(service, 'orders')
    await service.call('createGroup', { name: 'billing', mode: 'claimed' })
    await service.call('subscribe', {}, { groupName: 'billing', topicName: 'orders' })
    await service.call('putTarget', { url }, { groupName: 'billing', targetName: 'hook' })
    // The flag is lost, and with it the word of the append.
    await core.store.setNotifies('orders', 'billing', false)
    core.topics.forget('orders')
    core.bus.tell = async notice => void told.push(notice)
    await service.call('publish', { topicName: 'orders', msgs: [{ body: 'm' }] })
    assert.deepEqual(told, [])
    const retold = []
    for (let i = 0; i < 5; i++) {
      service.clock.advance(minuteMs)
      retold.push((await tick(core)).retold)
    }
    const again = told.filter(({ type }) => type === 'QueueAppended')
    assert.deepEqual(again[0], { type: 'QueueAppended', topicName: 'orders', queueId, isDue: true })
    assert.ok(again.length >= 2 && again.length <= 5, `${retold}`)
    assert.deepEqual((await core.store.readTopic('orders'))?.notifies, ['billing'])
    const { queues } = await service.call('claimQueues', { consumerGroupName: 'billing', claimant: 'a' })
    const [claimed] = Object.values(queues ?? {})
    await service.call('commitOffset', { queueOffsets: [{ ...claimed, consumerGroupName: 'billing', offset: 1 }] })
    told.length = 0
    const fiveMinutes = async () => {
      for (let i = 0; i < 5; i++) {
        service.clock.advance(minuteMs)
        await tick(core)
      }
    }
    await fiveMinutes()
    assert.deepEqual(told, [])
    // Nobody would hear it.
    await service.call('disableTarget', undefined, { groupName: 'billing', targetName: 'hook' })
    await service.call('publish', { topicName: 'orders', msgs: [{ body: 'm' }] })
    told.length = 0
    await fiveMinutes()
    assert.deepEqual(told, [])
    await service.close()
  })
})
