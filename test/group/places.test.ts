import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { registerConsumerGroup } from '../../core/client/register-group.ts'
import { headingFor } from '../../core/group/handover.ts'
import { selectMembers } from '../../core/group/members.ts'
import { rebalance } from '../../core/group/rebalance.ts'
import type { RegisterGroupResponse } from '../../core/protocol/membership.ts'
import type { Store } from '../../core/store.ts'
import { explore } from '../core/explore.ts'
import { type Call, type Fate, intercept, meet } from '../core/scripted-store.ts'
import { createContainer } from '../log/containers.ts'
import { consumerOf } from '../store/contract.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { groupName, makeGroup, nowMs, openRegistry, ownersOf, type Registry, read, topicName } from './groups.ts'

const clock = createManualClock(nowMs)
const instanceId = 'place'
/** A member without a place, whose queues are to stay where they are. */
const other = 1
const former = 2

describe('consumers that start at one place, whatever the order of the operations', () => {
  let registry: Registry
  beforeEach(() => {
    registry = openRegistry()
  })
  afterEach(() => registry.close())

  const start = (store: Store, consumerId: number, isReturning = false) =>
    registerConsumerGroup(createContainer(store, { clock }), {
      consumerId,
      consumerGroupNames: { [groupName]: [topicName] },
      instanceId,
      returning: isReturning,
    })
  const rebalanced = (store: Store) => rebalance(createContainer(store, { clock }), groupName)

  type Scene = {
    starters: number[]
    returning?: number[]
    /** Who has the queues before: the other one, and whoever is at the place. */
    owners: number[]
    rebalances?: number
    failures?: number
    judge(answers: Record<string, RegisterGroupResponse | Error>): Promise<void>
  }

  async function play({ starters, returning = [], owners, rebalances = 1, failures = 0, judge }: Scene) {
    const { store } = registry
    const isTaken = owners.includes(former)
    await makeGroup(store, { owners, members: [other] })
    for (const consumerId of [former, ...starters]) {
      await store.registerConsumer(consumerOf(consumerId, `consumer-${consumerId}`, { heartbeatAtMs: nowMs }))
    }
    if (isTaken) await start(store, former)
    await rebalanced(store)
    registry.keep()
    const before = await read(store)
    return explore(stage => {
      registry.reset()
      let failuresLeft = failures
      const through = (mind: string) =>
        intercept(store, call => {
          // Rebalances come when they like here, asked for or not.
          if (call.operation === 'askRebalance') return Promise.resolve({ ...before.group, rebalanceAsked: 9 })
          if (!matters.has(call.operation)) return call.run()
          return stage.step(mind, `${call.operation} ${JSON.stringify(call.args)}`, () => {
            const run = (fate: Fate) => () => {
              if (fate !== 'done') failuresLeft--
              return meet(fate, { ...call, run: () => watch(call) })
            }
            const done = { done: run('done') }
            if (failuresLeft === 0 || call.operation.startsWith('read')) return done
            return { ...done, 'lost request': run('lost request'), 'lost answer': run('lost answer') }
          })
        })
      /** The other member keeps what it has, and gets nothing of the place's. */
      async function watch(call: Call): Promise<unknown> {
        const answer = await call.run()
        if (!isTaken) return answer
        for (const [i, offset] of (await read(store)).offsets.entries()) {
          if (owners[i] === other) {
            assert.deepEqual(offset, before.offsets[i], 'a queue of the other one was touched')
          } else {
            assert.notEqual(headingFor(offset), other, 'a queue of the place went to the other one')
            assert.notEqual(headingFor(offset), 0, 'a queue of the place went to nobody')
          }
        }
        return answer
      }
      const acts: [string, () => Promise<unknown>][] = starters.map(id => {
        const mind = `starter ${id}`
        return [mind, () => start(through(mind), id, returning.includes(id))]
      })
      for (let i = 0; i < rebalances; i++) {
        acts.push([`rebalance ${i}`, () => rebalanced(through(`rebalance ${i}`))])
      }
      return {
        actors: Object.fromEntries(acts),
        world: () => [registry.dump(), failuresLeft],
        judge: results => judge(results as Record<string, RegisterGroupResponse | Error>),
      }
    })
  }

  /** The other member and this one are the members, and have what was theirs and the place's once all is rebalanced. */
  async function assertHolds(holder: number, owners: number[]): Promise<void> {
    const { store } = registry
    assert.deepEqual(await memberIds(store), [other, holder])
    await rebalanced(store)
    const expected = owners.map(owner => (owner === other ? other : holder))
    assert.deepEqual(ownersOf(await read(store)), expected)
  }
  const memberIds = async (store: Store) => (await read(store)).members.map(member => member.consumerId)
  const isIn = (answer: RegisterGroupResponse | Error | undefined) =>
    answer !== undefined && 'suc' in answer && answer.suc
  const isTold = (answer: RegisterGroupResponse | Error | undefined) =>
    answer !== undefined && 'suc' in answer && answer.replaced === true

  // With a third one the other would have to give something up; without the former one he would get something.
  for (const owners of [
    [other, other, former],
    [other, former, former],
  ]) {
    test(`one remains of two that take a place, and has its queues; nobody else’s move: ${owners}`, async t => {
      const { plays, ends } = await play({
        starters: [5, 6],
        owners,
        async judge({ 'starter 5': five, 'starter 6': six }) {
          assert.ok(isIn(six))
          assert.ok(isIn(five) || isTold(five))
          await assertHolds(6, owners)
          assert.deepEqual(await registry.store.readConsumers([former, 5]), [], 'who was let go is still known')
        },
      })
      t.diagnostic(`${plays} plays, ${ends} ends`)
    })

    test(`one that starts has the queues though an operation or its answer is lost, if it asks again: ${owners}`, async t => {
      const { plays, ends } = await play({
        starters: [5],
        owners,
        failures: 1,
        async judge() {
          assert.ok((await start(registry.store, 5)).suc)
          await assertHolds(5, owners)
        },
      })
      t.diagnostic(`${plays} plays, ${ends} ends`)
    })
  }

  test('one remains of two that take a place though an operation or its answer is lost, if who hears so asks again', async t => {
    const owners = [other, former, former]
    const { plays, ends } = await play({
      starters: [5, 6],
      owners,
      rebalances: 0,
      failures: 1,
      async judge({ 'starter 5': five, 'starter 6': six }) {
        if (six instanceof Error) assert.ok((await start(registry.store, 6)).suc)
        else assert.ok(isIn(six))
        if (five instanceof Error) await start(registry.store, 5)
        else assert.ok(isIn(five) || isTold(five))
        // Five may be a member as long as it is not found silent; it is given nothing.
        await rebalanced(registry.store)
        const after = await read(registry.store)
        const able = selectMembers(after).map(member => member.consumerId)
        assert.deepEqual(
          [able, ownersOf(after)],
          [
            [other, 6],
            [other, 6, 6],
          ],
        )
      },
    })
    t.diagnostic(`${plays} plays, ${ends} ends`)
  })

  test('one remains of two that take a free place: the higher id', async t => {
    const { plays, ends } = await play({
      starters: [5, 6],
      owners: [other, other, other],
      async judge({ 'starter 5': five, 'starter 6': six }) {
        assert.ok(isIn(six))
        assert.ok(isIn(five) || isTold(five))
        assert.deepEqual(await memberIds(registry.store), [other, 6])
        await rebalanced(registry.store)
        assert.deepEqual(ownersOf(await read(registry.store)).toSorted(), [other, other, 6])
      },
    })
    t.diagnostic(`${plays} plays, ${ends} ends`)
  })

  test('one remains of one that starts and one that comes back', async t => {
    const { plays, ends } = await play({
      starters: [5, 6],
      returning: [6],
      owners: [other, other, other],
      async judge({ 'starter 5': five, 'starter 6': six }) {
        assert.ok(isIn(five) || isIn(six))
        assert.ok(isIn(five) || isTold(five))
        assert.ok(isIn(six) || isTold(six))
        const [, holder] = await memberIds(registry.store)
        assert.deepEqual(await memberIds(registry.store), [other, isIn(six) ? 6 : 5])
        assert.ok(holder)
      },
    })
    t.diagnostic(`${plays} plays, ${ends} ends`)
  })
})

/** What a place depends on; the rest changes nothing, or is read together with the group. */
const matters = new Set([
  'readGroup',
  'joinGroup',
  'leaveGroup',
  'loseMember',
  'removeConsumer',
  'moveQueue',
  'finishRebalance',
])
