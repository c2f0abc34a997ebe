import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { deRegister } from '../../core/client/deregister.ts'
import { register } from '../../core/client/register.ts'
import type { Core } from '../../core/core.ts'
import { expireMembers } from '../../core/group/expire.ts'
import type { Store } from '../../core/store.ts'
import { silentBus } from '../../functions/edge/lazy-bus.ts'
import { explore } from '../core/explore.ts'
import { intercept, scriptStore } from '../core/scripted-store.ts'
import { createContainer } from '../log/containers.ts'
import { consumerOf, groupOf, memberOf } from '../store/contract.ts'
import { createManualClock } from '../support/manual-clock.ts'
import {
  closeRebalance,
  groupName,
  lookedBefore,
  makeGroup,
  nowMs,
  openRegistry,
  type Registry,
  read,
} from './groups.ts'

const sessionTimeoutMs = 30_000
const clock = createManualClock(nowMs)

describe('the members of a group', () => {
  let registry: Registry
  let store: Store
  let announced: string[]
  beforeEach(async () => {
    registry = openRegistry()
    store = registry.store
    announced = []
    await makeGroup(store, { owners: [1, 2], members: [1, 2] })
    await closeRebalance(store)
  })
  afterEach(() => registry.close())

  const core = (through = store): Core => {
    const groupChanged = async (name: string) => void announced.push(name)
    return Object.assign(createContainer(through, { clock }), { bus: { ...silentBus, groupChanged } })
  }
  const silentSince = (consumerId: number, heartbeatAtMs: number) => store.heartbeat(consumerId, heartbeatAtMs)
  const expire = async (through = store) => expireMembers(await lookedBefore(core(through), store), await read(store))
  const members = async () => (await read(store)).members.map(member => member.consumerId)

  test('are given up when their last heartbeat is older than the session time-out, and not before', async () => {
    await silentSince(1, nowMs - sessionTimeoutMs)
    await silentSince(2, nowMs - sessionTimeoutMs - 1)
    await expire()
    assert.deepEqual(await members(), [1])
    assert.deepEqual(announced, [groupName])
  })

  test('are given up when the clock has been set back since their last heartbeat, unless they are heard of again', async () => {
    await silentSince(1, nowMs + 3_600_000)
    await silentSince(2, nowMs + 3_600_000)
    await silentSince(2, nowMs)
    await expire()
    assert.deepEqual(await members(), [2])
  })

  test('come back as new consumers, whom nobody takes out of their groups any more', async () => {
    await store.takeIds('consumer', 10)
    const before = await register(core(), { name: 'consumer-2', clientIp: 'ip', sdkVersion: '1' })
    assert.equal(before.id, 2)
    await store.removeConsumer(2)
    const after = await register(core(), { name: 'consumer-2', clientIp: 'ip', sdkVersion: '1' })
    assert.notEqual(after.id, 2)
  })

  test('cost no write while they live', async () => {
    const { store: watched, calls } = scriptStore(store)
    await expire(watched)
    assert.deepEqual(
      calls.map(call => call.operation),
      ['readConsumers'],
    )
  })

  test('learn from their next heartbeat that they were given up', async () => {
    await silentSince(2, 0)
    await expire()
    assert.equal(await store.heartbeat(2, nowMs), undefined)
    assert.equal((await store.heartbeat(1, nowMs))?.consumerId, 1)
  })

  test('stay members if they come back before they are removed', async () => {
    await silentSince(2, 0)
    const { store: scripted, next } = scriptStore(store)
    next('removeConsumer', async call => {
      await store.heartbeat(2, nowMs)
      return call.run()
    })
    await expire(scripted)
    assert.deepEqual(await members(), [1, 2])
    assert.deepEqual(announced, [])
  })

  test('leave all groups that they are in', async () => {
    await store.createGroup(groupOf('shipping'))
    await store.joinGroup(memberOf('shipping', 2))
    await silentSince(2, 0)
    await expire()
    assert.deepEqual((await store.readGroup('shipping'))?.members, [])
    assert.deepEqual(announced.toSorted(), [groupName, 'shipping'])
  })

  test('leave when there is no such consumer any more', async () => {
    await store.removeConsumer(2)
    await expire()
    assert.deepEqual(await members(), [1])
    assert.deepEqual(announced, [groupName])
  })

  test('leave when they say so, once', async () => {
    assert.deepEqual(await deRegister(core(), { id: 2 }), { suc: true })
    assert.deepEqual(await deRegister(core(), { id: 2 }), { suc: true })
    assert.deepEqual(await members(), [1])
    assert.deepEqual(announced, [groupName])
  })

  test('are given up once by two that look at the same time', async () => {
    await silentSince(2, 0)
    await Promise.all([expire(), expire()])
    assert.deepEqual(await members(), [1])
    assert.deepEqual(announced, [groupName])
    const { rebalanceAsked } = (await read(store)).group
    assert.equal(rebalanceAsked, 4)
  })

  test('are members or told that they are not, in whatever order they come back and are given up', async () => {
    await silentSince(2, 0)
    registry.keep()
    const { ends } = await explore(stage => {
      registry.reset()
      const through = (mind: string) =>
        intercept(store, call =>
          stage.step(mind, `${call.operation} ${JSON.stringify(call.args)}`, () => ({ done: call.run })),
        )
      const expireThrough = async (mind: string) => {
        const seen = await through(mind).readGroup(groupName)
        if (seen) await expireMembers(await lookedBefore(core(through(mind)), store), seen)
      }
      return {
        actors: {
          one: () => expireThrough('one'),
          other: () => expireThrough('other'),
          heartbeat: () => through('heartbeat').heartbeat(2, nowMs),
          register: () => through('register').registerConsumer(consumerOf(9, 'consumer-9', { heartbeatAtMs: nowMs })),
        },
        world: () => registry.dump(),
        async judge({ heartbeat }) {
          assert.deepEqual(await members(), heartbeat === undefined ? [1] : [1, 2])
        },
      }
    })
    assert.ok(ends > 1)
  })
})
