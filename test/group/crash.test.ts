import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { deRegister } from '../../core/client/deregister.ts'
import { registerConsumerGroup } from '../../core/client/register-group.ts'
import type { Core } from '../../core/core.ts'
import { rebalance } from '../../core/group/rebalance.ts'
import { type Store, StoreError } from '../../core/store.ts'
import { tick } from '../../core/tick/tick.ts'
import { silentBus } from '../../functions/edge/lazy-bus.ts'
import { intercept } from '../core/scripted-store.ts'
import { createContainer } from '../log/containers.ts'
import { consumerOf, queueOf } from '../store/contract.ts'
import { createManualClock } from '../support/manual-clock.ts'
import {
  assertSettled,
  closeRebalance,
  groupName,
  makeGroup,
  nowMs,
  openRegistry,
  ownersOf,
  read,
  topicName,
  watchGroup,
} from './groups.ts'

type Case = {
  owners: number[]
  members: number[]
  before?: (store: Store) => Promise<unknown>
  /** What the process does that dies. */
  act: (core: Core) => Promise<unknown>
}

const cases: Record<string, Case> = {
  'a rebalance': {
    owners: [1, 1, 1],
    members: [1, 2],
    act: core => rebalance(core, groupName),
  },
  'a rebalance that gives the group its place in new queues': {
    owners: [1],
    members: [1, 2],
    before: async store => {
      await store.addQueues(topicName, [queueOf(topicName, 8)])
      await store.addQueues(topicName, [queueOf(topicName, 9)])
      await store.askRebalance(groupName)
    },
    act: core => rebalance(core, groupName),
  },
  'a consumer that joins': {
    owners: [1, 1, 1],
    members: [1],
    before: store => store.registerConsumer(consumerOf(2, 'consumer-2', { heartbeatAtMs: nowMs })),
    act: core => registerConsumerGroup(core, { consumerId: 2, consumerGroupNames: { [groupName]: [topicName] } }),
  },
  'a consumer that leaves': {
    owners: [1, 2, 2],
    members: [1, 2],
    act: core => deRegister(core, { id: 2 }),
  },
  'a tick that gives up a dead consumer': {
    owners: [1, 2, 2],
    members: [1, 2],
    before: store => store.registerConsumer(consumerOf(2, 'consumer-2', { heartbeatAtMs: nowMs - 30_001 })),
    act: core => tick(core),
  },
}

const clock = createManualClock(nowMs)
/** As the host does it: a change of a group is followed by its rebalance. */
function createProcess(store: Store): Core {
  const core = createContainer(store, { clock })
  const bus = {
    ...silentBus,
    groupChanged: async (name: string) => {
      await rebalance(core, name)
    },
  }
  return Object.assign(core, { bus })
}

/** A store that is gone from the nth operation on, of which that one may or may not have been done. */
function dyingAt(store: Store, n: number, isDone: boolean): { store: Store; count(): number } {
  let count = 0
  const dying = intercept(store, async call => {
    if (++count === n && isDone) await call.run()
    if (count >= n) throw new StoreError('unavailable', `the process died at ${call.operation}`)
    return call.run()
  })
  return { store: dying, count: () => count }
}

describe('one tick brings a group in order, and tells its consumers, after the process died in', () => {
  for (const [name, { owners, members, before, act }] of Object.entries(cases)) {
    test(name, async t => {
      const registry = openRegistry()
      try {
        await makeGroup(registry.store, { owners, members })
        await before?.(registry.store)
        await closeRebalance(registry.store)
        registry.keep()
        const whole = dyingAt(registry.store, Number.POSITIVE_INFINITY, true)
        await act(createProcess(whole.store))
        const expected = ownersOf(await read(registry.store))
        t.diagnostic(`at each of ${whole.count()} operations`)

        for (let n = 1; n <= whole.count(); n++) {
          for (const isDone of [false, true]) {
            registry.reset()
            const { seen, watch } = watchGroup(registry.store)
            const watched = intercept(registry.store, watch)
            await act(createProcess(dyingAt(watched, n, isDone).store)).catch(error =>
              assert.ok(error instanceof StoreError),
            )
            const { failed } = await tick(createProcess(watched))
            assert.deepEqual(failed, [])
            const after = await read(registry.store)
            const where = `operation ${n}, ${isDone ? 'done' : 'not done'}`
            assertSettled(after)
            assert.ok(!seen.isUntold, `consumers were not told of the last move: ${where}`)
            // Where the service died before it could say so, a death may be missed; none is counted twice, or made up.
            const deaths = after.offsets.map(offset => offset.deaths?.count ?? 0)
            const most = name.includes('dead') ? 1 : 0
            assert.ok(Math.max(...deaths) <= most, `deaths ${deaths}: ${where}`)
            assert.deepEqual(after.lost, [], `somebody is remembered as lost: ${where}`)
            for (const owner of ownersOf(after)) {
              assert.ok(
                after.members.some(member => member.consumerId === owner),
                `a queue is with nobody: ${where}`,
              )
            }
            // Whoever asked to leave, or was dead, is gone also where the process died before it said so to the group.
            if (n > 1 && name !== 'a consumer that joins')
              assert.deepEqual(ownersOf(after).toSorted(), expected.toSorted())
          }
        }
      } finally {
        await registry.close()
      }
    })
  }
})
