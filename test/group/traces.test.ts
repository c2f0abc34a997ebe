import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { deRegister } from '../../core/client/deregister.ts'
import { heartbeat } from '../../core/client/heartbeat.ts'
import { register } from '../../core/client/register.ts'
import { registerConsumerGroup } from '../../core/client/register-group.ts'
import type { Core } from '../../core/core.ts'
import { StoreError } from '../../core/store.ts'
import { tick } from '../../core/tick/tick.ts'
import { intercept, meet } from '../core/scripted-store.ts'
import { createContainer } from '../log/containers.ts'
import { groupOf, offsetOf, queueOf, subscriptionOf, topicOf } from '../store/contract.ts'
import { createManualClock, type ManualClock } from '../support/manual-clock.ts'
import { seededRandom } from '../support/random.ts'
import { nowMs, openRegistry, type Registry, topicName } from './groups.ts'

const minute = 60_000
const groupNames = ['billing', 'shipping', 'news']

describe('the registry', () => {
  let registry: Registry
  let clock: ManualClock
  let core: Core
  let random: () => number
  /** Which part of the operations fails, or loses its answer. */
  let failures: number
  beforeEach(async () => {
    registry = openRegistry()
    clock = createManualClock(nowMs)
    random = seededRandom(7)
    failures = 0
    const flaky = intercept(registry.store, call =>
      meet(random() < failures ? (random() < 0.5 ? 'lost request' : 'lost answer') : 'done', call),
    )
    core = createContainer(flaky, { clock })
    const { store } = registry
    await store.createTopic(
      topicOf(topicName),
      [1, 2, 3, 4].map(queueId => queueOf(topicName, queueId)),
    )
    for (const [i, groupName] of groupNames.entries()) {
      await store.createGroup(groupOf(groupName, { mode: groupName === 'news' ? 'broadcast' : 'balanced' }))
      await store.createSubscription(subscriptionOf(groupName, topicName))
      if (groupName === 'news') continue
      for (const queueId of [1, 2, 3, 4]) {
        await store.addQueueOffset(offsetOf(groupName, 10 * (i + 1) + queueId, { queueId }))
      }
    }
    await ticks(2)
  })
  afterEach(() => registry.close())

  async function ticks(minutes: number): Promise<void> {
    for (let i = 0; i < minutes; i++) {
      const { failed } = await tick(core)
      if (failures === 0) assert.deepEqual(failed, [])
      clock.step(minute)
    }
  }
  /** Keys of all records; the counters of ids stay once they are there. */
  const keysOf = () =>
    (JSON.parse(registry.dump()) as string[][])
      .map(([pk, sk]) => `${pk} ${sk}`)
      .filter(key => !key.startsWith('COUNTER#'))
  const enter = async (name: string) => (await register(core, { name, clientIp: '10.0.0.1', sdkVersion: '1' })).id ?? 0
  const chance = (part: number) => random() < part

  /** Registers, and perhaps joins, lives for a while, leaves, or comes back; and is not heard of again. */
  async function live(i: number): Promise<void> {
    const consumerId = await enter(`host-${i}|${random()}`)
    if (chance(0.1)) return
    const joined = groupNames.filter(() => chance(0.6))
    const consumerGroupNames = Object.fromEntries(joined.map(groupName => [groupName, chance(0.1) ? [] : [topicName]]))
    const instanceId = chance(0.3) ? `place-${Math.floor(random() * 5)}` : undefined
    const joining = { consumerId, consumerGroupNames, instanceId, returning: chance(0.3) }
    await Promise.all([joining, ...(chance(0.1) ? [joining] : [])].map(each => registerConsumerGroup(core, each)))
    if (chance(0.5)) await heartbeat(core, { consumerId })
    if (chance(0.2)) await deRegister(core, { id: consumerId })
  }

  async function churn(): Promise<void> {
    for (let i = 0; i < 1_000; ) {
      const together = 1 + Math.floor(random() * 5)
      const lives = Array.from({ length: together }, (_, k) => live(i + k))
      for (const life of await Promise.allSettled(lives)) {
        if (life.status === 'rejected') assert.ok(failures > 0 && life.reason instanceof StoreError, life.reason)
      }
      i += together
      if (chance(0.1)) await ticks(1)
      else clock.step(Math.floor(random() * 5_000))
    }
  }

  for (const [what, part] of [
    ['', 0],
    [', though one operation in fifty fails or loses its answer', 0.02],
  ] as const) {
    test(`keeps no trace of a thousand consumers that came and died${what}`, async () => {
      const before = keysOf()
      failures = part
      await churn()
      failures = 0
      await ticks(12)
      assert.deepEqual(keysOf(), before)
      assert.deepEqual(await registry.store.listAwakeGroups(), [])
    })
  }

  test('keeps a newcomer for ten minutes, and as long as it is heard of', async () => {
    const before = keysOf()
    const [silent, heard] = [await enter('silent'), await enter('heard')]
    for (let i = 0; i < 10; i++) {
      await ticks(1)
      await heartbeat(core, { consumerId: heard })
    }
    const known = async () => (await registry.store.readConsumers([silent, heard])).map(each => each.consumerId)
    assert.deepEqual(await known(), [silent, heard])
    clock.step(1)
    await ticks(1)
    assert.deepEqual(await known(), [heard])
    await ticks(11)
    assert.deepEqual(await known(), [])
    assert.deepEqual(keysOf(), before)
  })
})
