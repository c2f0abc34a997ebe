import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { groupHasChanged } from '../../core/core.ts'
import type { Notice } from '../../core/notices.ts'
import { tick } from '../../core/tick/tick.ts'
import { openSqliteStore } from '../../store/sqlite/open.ts'
import { scriptStore } from '../core/scripted-store.ts'
import { base, register } from './scene.ts'
import { openService, type Service } from './service.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const orders = { topicName: 'orders' }
const billing = { groupName: 'billing' }

type Told = Extract<Notice, { alarm: unknown }>

describe('an alarm', () => {
  let service: Service
  let scripted: ReturnType<typeof scriptStore<ReturnType<typeof openSqliteStore>>>
  let told: Told[]
  let isBusAway: boolean
  beforeEach(() => {
    scripted = scriptStore(openSqliteStore(':memory:'))
    service = openService({ store: scripted.store })
    told = []
    isBusAway = false
    const { bus, looks } = service.core
    // When groups are looked at is another matter: here each minute.
    looks.isDue = () => true
    bus.groupChanged = async name => groupHasChanged(service.core, name)
    bus.tell = async notice => {
      if (isBusAway) return 'lost'
      if ('alarm' in notice) told.push(notice)
      return undefined
    }
  })
  afterEach(() => service.close())

  async function minutes(count: number, ticksAtOnce = 1) {
    const failed = []
    for (let i = 0; i < count; i++) {
      service.clock.advance(minuteMs)
      const reports = await Promise.all(Array.from({ length: ticksAtOnce }, () => tick(service.core)))
      failed.push(...reports.flatMap(report => report.failed))
    }
    return failed
  }
  async function setUp({ queues = 2, mode = 'balanced', ...settings }: { [field: string]: unknown } = {}) {
    await service.call('createTopic', { name: 'orders', queues, retentionMs: 240 * hourMs })
    await service.call('createGroup', { name: 'billing', mode })
    await service.call('subscribe', settings, { ...billing, ...orders })
  }
  async function publish(count: number) {
    for (let at = 0; at < count; at += 1_000) {
      const msgs = Array.from({ length: Math.min(1_000, count - at) }, () => ({ body: 'm' }))
      const { suc, msg } = await service.call('publish', { ...orders, msgs })
      assert.equal(suc, true, msg)
    }
  }
  const caughtUp = () => service.call('resetOffsets', { of: 'all', to: 'end' }, billing)
  const types = () => told.map(({ type }) => type)
  const list = async (request: object = {}) => (await service.call('listAlarms', request)).alarms

  test('is one for a thousand queues that are behind, and one when they have caught up', async () => {
    await setUp({ queues: 1_000, maxLag: 500 })
    const { topicQueues } = await service.call('getTopicQueueIds', { topicNames: ['orders'] })
    const msgs = (topicQueues?.orders ?? []).map(queueId => ({ body: 'm', partitionInfo: { queueId } }))
    assert.equal(msgs.length, 1_000)
    await service.call('publish', { ...orders, msgs })
    await minutes(5)
    assert.deepEqual(types(), ['AlarmRaised'])
    assert.partialDeepStrictEqual(told[0]?.alarm.facts, { messages: 1_000 })
    await caughtUp()
    await minutes(5)
    assert.deepEqual(types(), ['AlarmRaised', 'AlarmCleared'])
  })

  test('is told once each time, however many ticks look at once', async () => {
    await setUp({ maxLag: 1 })
    for (const expected of [
      ['AlarmRaised'],
      ['AlarmRaised', 'AlarmCleared'],
      ['AlarmRaised', 'AlarmCleared', 'AlarmRaised'],
    ]) {
      if (expected.length % 2 === 1) await publish(9)
      else await caughtUp()
      await minutes(5, 3)
      assert.deepEqual(types(), expected)
    }
  })

  test('is told of although the answer of the store was lost that has taken it', async () => {
    await setUp({ maxLag: 1 })
    scripted.next('putAlarm', 'lost answer')
    await publish(9)
    assert.equal((await minutes(1)).length, 1)
    assert.deepEqual(types(), [])
    assert.deepEqual(await minutes(5), [])
    assert.deepEqual(types(), ['AlarmRaised'])
  })

  test('is told twice, and no more, where it could not be noted that it was told', async () => {
    await setUp({ maxLag: 1 })
    scripted.next('putAlarm', 'done', 'lost request')
    await publish(9)
    assert.equal((await minutes(1)).length, 1)
    assert.deepEqual(types(), ['AlarmRaised'])
    assert.deepEqual(await minutes(5), [])
    assert.deepEqual(types(), ['AlarmRaised', 'AlarmRaised'])
  })

  test('is told of when the bus is there again that was away', async () => {
    await setUp({ maxLag: 1 })
    isBusAway = true
    await publish(9)
    await minutes(10)
    assert.partialDeepStrictEqual(await list(), [{ kind: 'lag' }])
    isBusAway = false
    await minutes(5)
    assert.deepEqual(types(), ['AlarmRaised'])
  })

  test('is not over before it was told that it began', async () => {
    await setUp({ maxLag: 1 })
    isBusAway = true
    await publish(9)
    await minutes(5)
    await caughtUp()
    await minutes(5)
    isBusAway = false
    await minutes(5)
    assert.deepEqual(types(), ['AlarmRaised', 'AlarmCleared'])
  })

  test('says that there is nothing to catch up with any more where the subscription has ended', async () => {
    await setUp({ maxLag: 1 })
    await publish(9)
    await minutes(2)
    await service.call('unsubscribe', undefined, { ...billing, ...orders })
    await minutes(2)
    assert.deepEqual(types(), ['AlarmRaised', 'AlarmCleared'])
    assert.equal(told[1]?.text, 'Nobody reads topic orders for group billing any more')
    assert.partialDeepStrictEqual(await list({ state: 'all' }), [{ isGone: true, facts: {} }])
  })

  test('is over when a broadcast group has no consumers any more that it could be about', async () => {
    await setUp({ maxLag: 1, mode: 'broadcast' })
    const consumerId = await register(service, 'mirror')
    await service.call('registerConsumerGroup', { ...base, consumerId, consumerGroupNames: { billing: ['orders'] } })
    await publish(9)
    for (let thirds = 1; thirds <= 15; thirds++) {
      service.clock.advance(minuteMs / 3)
      await service.call('heartbeat', { ...base, consumerId })
      if (thirds % 3 === 0) await tick(service.core)
    }
    assert.deepEqual(types(), ['AlarmRaised'])
    await service.call('deRegister', { id: consumerId })
    await minutes(3)
    assert.deepEqual(types(), ['AlarmRaised', 'AlarmCleared'])
    assert.equal(told[1]?.text, 'Nobody reads topic orders for group billing any more')
  })

  test('of what failed to be raised, cleared or dropped of a target is made up for by the next tick', async () => {
    await setUp()
    const hook = { ...billing, targetName: 'hook' }
    const { core } = service
    for (const each of ['hook', 'other']) {
      await service.call('putTarget', { url: 'https://example.com/hook' }, { ...billing, targetName: each })
    }
    const [target] = await core.store.readTargets({ groupName: 'billing' })
    assert.ok(target)
    // As whoever disables one leaves it that dies before he can tell.
    const state = { ...target.state, failures: 4, isDisabled: true, disabledBy: 'failures' as const }
    await core.store.replaceTarget({ ...target, state, revision: target.revision + 1 })
    await minutes(3)
    assert.partialDeepStrictEqual(told, [
      { type: 'AlarmRaised', alarm: { kind: 'target_disabled', ...hook, facts: { failures: 5 } } },
    ])
    scripted.next('putAlarm', 'lost request')
    assert.equal((await service.send('enableTarget', undefined, hook)).status, 503)
    await minutes(3)
    assert.deepEqual(types(), ['AlarmRaised', 'AlarmCleared'])
    assert.equal(told[1]?.text, 'Target hook of group billing is sent to again')
    const [again] = await core.store.readTargets({ groupName: 'billing' })
    assert.ok(again)
    await core.store.replaceTarget({ ...again, state, revision: again.revision + 1 })
    await minutes(3)
    await core.store.removeTarget(again)
    await minutes(3)
    assert.deepEqual(types().slice(2), ['AlarmRaised', 'AlarmCleared'])
    assert.equal(told[3]?.text, 'Target hook of group billing was removed')
  })

  test('of a target of alarms that failed is made up for as well', async () => {
    const { core } = service
    await service.call('putAlarmTarget', { url: 'https://example.com/hook' }, { targetName: 'ops' })
    const [target] = await core.store.readTargets('alarms')
    assert.ok(target)
    const state = { ...target.state, isDisabled: true, disabledBy: 'failures' as const }
    await core.store.replaceTarget({ ...target, state, revision: target.revision + 1 })
    await minutes(2)
    assert.equal(told[0]?.text, 'Target ops of alarms is sent nothing any more, since it has failed once')
  })

  test('says that a target was removed, and is over with its group', async () => {
    await setUp()
    const hook = { ...billing, targetName: 'hook' }
    await service.call('putTarget', { url: 'https://example.com/hook' }, hook)
    const [target] = await service.core.store.readTargets({ groupName: 'billing' })
    assert.ok(target)
    const state = { ...target.state, isDisabled: true, disabledBy: 'failures' as const }
    await service.core.store.replaceTarget({ ...target, state, revision: target.revision + 1 })
    await minutes(2)
    await service.call('removeTarget', undefined, hook)
    assert.deepEqual(
      told.map(({ text }) => text),
      [
        'Target hook of group billing is sent nothing any more, since it has failed once',
        'Target hook of group billing was removed',
      ],
    )
    await service.call('putTarget', { url: 'https://example.com/hook' }, hook)
    const [next] = await service.core.store.readTargets({ groupName: 'billing' })
    assert.ok(next)
    await service.core.store.replaceTarget({ ...next, state, revision: next.revision + 1 })
    await minutes(2)
    await service.call('removeGroup', undefined, billing)
    await minutes(2)
    assert.deepEqual(types().slice(2), ['AlarmRaised', 'AlarmCleared'])
    assert.deepEqual(await list(), [])
  })

  test('does not keep those of others from being told where it cannot be told itself', async () => {
    await setUp({ maxLag: 1 })
    for (const groupName of ['audit', 'stock']) {
      await service.call('createGroup', { name: groupName })
      await service.call('subscribe', { maxLag: 1 }, { groupName, ...orders })
    }
    isBusAway = true
    await publish(9)
    await minutes(3)
    isBusAway = false
    const { store } = service.core
    const put = store.putAlarm
    service.core.store = {
      ...store,
      putAlarm: async alarm => {
        if (alarm.groupName === 'audit') throw new TypeError('a defect')
        return put(alarm)
      },
    }
    const failed = await minutes(1)
    assert.deepEqual(
      failed.map(({ what }) => what),
      ['alarm lag#audit#orders#'],
    )
    assert.deepEqual(told.map(({ alarm }) => alarm.groupName).sort(), ['audit', 'billing', 'stock'])
  })

  test('is listed with others page by page, the last change first, and no more a month after it was over', async () => {
    const groupNames = Array.from({ length: 7 }, (_, i) => `g${i}`)
    const { store } = service.core
    const nowMs = service.clock.now()
    const alarm = { kind: 'lag', ...orders, facts: {}, isTold: true, revision: 1 } as const
    for (const [i, groupName] of groupNames.entries()) {
      // Two of a time, and one of them is over.
      const raisedAtMs = nowMs - minuteMs + Math.floor(i / 2)
      await store.putAlarm({ ...alarm, groupName, raisedAtMs, ...(i === 6 && { clearedAtMs: nowMs }) })
    }
    const found: (string | undefined)[] = []
    for (let after: string | undefined, pages = 0; ; pages++) {
      const page = await service.call('listAlarms', { state: 'all', limit: 3, ...(after && { after }) })
      found.push(...page.alarms.map(({ groupName }) => groupName))
      assert.ok(page.alarms.length > 0 && pages < 3)
      after = page.next
      if (after === undefined) break
    }
    assert.deepEqual(found, ['g6', 'g5', 'g4', 'g3', 'g2', 'g1', 'g0'])
    assert.equal((await list()).length, 6)
    assert.equal((await list({ state: 'all', limit: 7 })).length, 7)
    assert.equal((await service.call('listAlarms', { state: 'all', limit: 7 })).next, undefined)
    service.clock.advance(30 * 24 * hourMs - 1)
    assert.equal((await list({ state: 'all' })).length, 7)
    service.clock.advance(1)
    assert.equal((await list({ state: 'all' })).length, 6)
    for (const wrong of [{ limit: 0 }, { limit: 1_001 }, { after: 'g0' }]) {
      assert.equal((await service.send('listAlarms', wrong)).status, 400)
    }
  })

  test('has no limit in a fail topic, where messages wait for their time', async () => {
    await setUp()
    const { status, json } = await service.send('updateTopic', { maxLag: 1 }, { topicName: 'billing_orders_fail' })
    assert.equal(status, 409)
    assert.match(String(json.message), /has the failures of topic orders/)
  })
})
