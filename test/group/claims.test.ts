import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { claimQueues, renewClaims } from '../../core/client/claims.ts'
import { commitOffset } from '../../core/client/commit.ts'
import type { Core } from '../../core/core.ts'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import type { ClaimRenewal, Commit, QueueClaim, Store } from '../../core/store.ts'
import { explore } from '../core/explore.ts'
import { type Call, type Fate, intercept, meet } from '../core/scripted-store.ts'
import { createContainer } from '../log/containers.ts'
import { batchOf, groupOf, offsetOf, queueOf, subscriptionOf, topicOf } from '../store/contract.ts'
import { createManualClock, type ManualClock } from '../support/manual-clock.ts'
import { groupName, nowMs, openRegistry, type Registry, read, topicName } from './groups.ts'

const leaseMs = 10_000

/** What a claimant does with each of the queues that it gets. */
type Work = (core: Core, queue: AssignedQueue) => Promise<unknown>

const commits =
  (offset: number, flag: 0 | 1 = 0): Work =>
  (core, { queueOffsetId, offsetVersion }) =>
    commitOffset(core, {
      queueOffsets: [{ queueOffsetId, offsetVersion, offset, consumerGroupName: groupName }],
      flag,
    })
const renews: Work = (core, { queueOffsetId, offsetVersion }) =>
  renewClaims(core, { consumerGroupName: groupName, leaseMs, queues: [{ queueOffsetId, offsetVersion }] })

/** What claims depend on. The rest changes nothing, or nothing that they look at. */
const matters = new Set(['readGroup', 'claimQueue', 'renewClaim', 'commitOffset', 'resetOffset', 'setStopped'])

type Scene = {
  queues: number
  /** By name, what each claimant does after it has claimed one queue. */
  claimants: Record<string, Work[]>
  /** Something else that happens at any time. */
  meanwhile?: Record<string, (store: Store) => Promise<unknown>>
  /** How often the lease passes, at any time. */
  leases: number
  failures?: number
}

describe('the claims of a group, whatever the order of the operations', () => {
  let registry: Registry
  beforeEach(() => {
    registry = openRegistry()
  })
  afterEach(() => registry.close())

  async function makeClaimed(queues: number): Promise<void> {
    const { store } = registry
    const queueIds = Array.from({ length: queues }, (_, i) => i + 1)
    await store.createTopic(
      topicOf(topicName),
      queueIds.map(queueId => queueOf(topicName, queueId)),
    )
    await store.createGroup(groupOf(groupName, { mode: 'claimed' }))
    await store.createSubscription(subscriptionOf(groupName, topicName))
    for (const queueId of queueIds) {
      await store.addQueueOffset(offsetOf(groupName, queueId, { queueId }))
      await store.appendBatch(batchOf(queueId, 1, { count: 5 }))
    }
    registry.keep()
  }

  async function play({ queues, claimants, meanwhile = {}, leases, failures = 0 }: Scene) {
    await makeClaimed(queues)
    return explore(stage => {
      registry.reset()
      const clock = createManualClock(nowMs)
      const { watch, assertSound } = watchClaims(registry.store)
      let failuresLeft = failures
      const through = (mind: string) =>
        intercept(registry.store, call => {
          // Tells the group's consumers, of which it has none.
          if (call.operation === 'raiseMeta') return Promise.resolve(undefined)
          if (!matters.has(call.operation)) return call.run()
          return stage.step(mind, `${call.operation} ${JSON.stringify(call.args)}`, () => {
            const run = (fate: Fate) => () => {
              if (fate !== 'done') failuresLeft--
              return meet(fate, { ...call, run: () => watch(mind, call) })
            }
            const done = { done: run('done') }
            if (failuresLeft === 0 || call.operation === 'readGroup') return done
            return { ...done, 'lost request': run('lost request'), 'lost answer': run('lost answer') }
          })
        })
      const working = Object.entries(claimants).map(([claimant, work]) => {
        const act = async () => {
          const core = createContainer(through(claimant), { clock })
          const { queues: claimed } = await claimQueues(core, {
            consumerGroupName: groupName,
            claimant,
            leaseMs,
            maxQueues: 1,
          })
          for (const queue of Object.values(claimed ?? {})) for (const each of work) await each(core, queue)
        }
        return [claimant, act] as const
      })
      const others = Object.entries(meanwhile).map(([name, act]) => [name, () => act(through(name))] as const)
      return {
        actors: { ...Object.fromEntries([...working, ...others]), time: () => passLeases(clock, leases, stage.step) },
        world: () => [registry.dump(), clock.now(), failuresLeft],
        judge: async results => {
          if (failures === 0) for (const result of Object.values(results)) assert.ok(!(result instanceof Error))
          assertSound(await read(registry.store))
        },
      }
    })
  }

  const scenes: Record<string, Scene> = {
    'two that want the same queue, commit and give it up': {
      queues: 1,
      claimants: { a: [commits(2), commits(3, 1)], b: [commits(4), commits(5, 1)] },
      leases: 1,
    },
    'two of which one renews': {
      queues: 1,
      claimants: { a: [renews, commits(2)], b: [commits(4)] },
      leases: 1,
    },
    'a claimant whose lease ends twice': {
      queues: 1,
      claimants: { a: [commits(2), renews, commits(3, 1)], b: [commits(4)] },
      leases: 2,
    },
    'two claimants of two queues': {
      queues: 2,
      claimants: { a: [commits(2)], b: [commits(3)] },
      leases: 1,
    },
    'a claimant and a reset': {
      queues: 1,
      claimants: { a: [commits(2), renews, commits(3)], b: [commits(4)] },
      meanwhile: { reset: store => store.resetOffset({ groupName, queueOffsetId: 1 }, 1) },
      leases: 0,
    },
    'a claimant and a stop': {
      queues: 1,
      claimants: { a: [commits(2, 1)], b: [commits(4, 1)] },
      meanwhile: {
        stop: async store => {
          await store.setStopped({ groupName, queueOffsetId: 1 }, true)
          await store.setStopped({ groupName, queueOffsetId: 1 }, false)
        },
      },
      leases: 0,
    },
    'two of which one loses a request or an answer': {
      queues: 1,
      claimants: { a: [commits(2), commits(3, 1)], b: [commits(4)] },
      leases: 1,
      failures: 1,
    },
  }
  for (const [name, scene] of Object.entries(scenes)) {
    test(`never make two claimants of one queue, and only the claimant moves the offset: ${name}`, async t => {
      const { plays, ends } = await play(scene)
      t.diagnostic(`${plays} plays, ${ends} ends`)
      assert.ok(ends > 1)
    })
  }
})

async function passLeases(
  clock: ManualClock,
  leases: number,
  step: (mind: string, label: string, outcomes: () => Record<string, () => void>) => Promise<void>,
): Promise<void> {
  for (let i = 0; i < leases; i++) await step('time', 'a lease passes', () => ({ done: () => clock.step(leaseMs) }))
}

/**
 * Watches a store from beneath: who has claimed which version of a queue, and that nobody else moves its offset, nor he
 * once there is a newer version.
 */
function watchClaims(store: Store) {
  const claimantOf = new Map<string, string>()
  const offsetsOf = async () => new Map((await read(store)).offsets.map(offset => [offset.queueOffsetId, offset]))
  return {
    async watch(mind: string, call: Call): Promise<unknown> {
      const before = await offsetsOf()
      const answer = (await call.run()) as { outcome?: string } | undefined
      const after = await offsetsOf()
      for (const [id, offset] of after) {
        const was = before.get(id)
        assert.ok(was && offset.offsetVersion >= was.offsetVersion, 'an offsetVersion fell')
        if (offset.offset !== was.offset && call.operation !== 'resetOffset') {
          assert.equal(call.operation, 'commitOffset')
          assert.equal(
            claimantOf.get(`${id}@${was.offsetVersion}`),
            mind,
            'an offset was moved by who does not hold it',
          )
          assert.ok(offset.offset > was.offset, 'an offset fell')
        }
      }
      if (call.operation === 'claimQueue' && answer?.outcome === 'claimed') {
        const { queueOffsetId, nowMs: atMs } = call.args[0] as QueueClaim
        const was = before.get(queueOffsetId)
        assert.ok((was?.claim?.untilMs ?? 0) <= atMs, 'a queue was claimed that somebody held')
        const key = `${queueOffsetId}@${after.get(queueOffsetId)?.offsetVersion}`
        assert.ok(!claimantOf.has(key), 'two claimants have the same offsetVersion')
        claimantOf.set(key, mind)
      }
      if (call.operation === 'commitOffset' || call.operation === 'renewClaim') {
        const { queueOffsetId, offsetVersion } = call.args[0] as Commit | ClaimRenewal
        const isCurrent = before.get(queueOffsetId)?.offsetVersion === offsetVersion
        assert.equal(answer?.outcome !== 'fenced', isCurrent, 'fenced is who is not the claimant, and nobody else')
      }
      return answer
    },
    assertSound({ offsets }: Awaited<ReturnType<typeof read>>) {
      for (const { queueOffsetId, offsetVersion, claim } of offsets) {
        if (claim) assert.equal(claimantOf.get(`${queueOffsetId}@${offsetVersion}`), claim.claimant)
      }
    },
  }
}
