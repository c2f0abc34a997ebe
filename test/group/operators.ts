import assert from 'node:assert/strict'
import { type Core, groupHasChanged } from '../../core/core.ts'
import { rebalance } from '../../core/group/rebalance.ts'
import type { GroupSnapshot } from '../../core/model.ts'
import { type Store, StoreError } from '../../core/store.ts'
import { type Exploration, explore, type Scene } from '../core/explore.ts'
import { type Call, type Fate, intercept, meet } from '../core/scripted-store.ts'
import { createContainer } from '../log/containers.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { groupName, nowMs, openRegistry } from './groups.ts'

/** Several operators, consumers and rebalances at work on one registry, each in a process of its own. */
export type OperatorScene = {
  before: (core: Core) => Promise<unknown>
  acts: Record<string, (core: Core) => Promise<unknown>>
  /** How often an answer may be lost, or a request. Whoever made it dies with that. */
  failures?: number
  /** How often one is interrupted by another before its end. @default 2 */
  interruptions?: number
  /** The act after which five more messages are published to each queue. */
  publishAfter?: string
  /** Judges what is left when every rebalance that is owed is done. */
  judge: (world: Ended) => unknown
}

export type Ended = { core: Core; results: Record<string, unknown>; hasFailed: boolean }

/** How many messages there are in each queue. */
export const newest = 10
export const publishedLater = 5

const clock = createManualClock(nowMs)

/** A process with the bus in it, as on one machine. `onSaid` is told when it has said that a group has changed. */
function createProcess(store: Store, log: { newest: number }, onSaid = (_groupName: string) => {}): Core {
  const core = createContainer(store, { clock, settings: { subEnvironments: true } })
  core.findEnd = async () => log.newest + 1
  core.bus.groupChanged = async changed => {
    groupHasChanged(core, changed)
    await rebalance(core, changed)
    onSaid(changed)
  }
  return core
}

/**
 * Plays the acts in every order of their operations on the registry in which they interrupt each other so often: what two
 * can do to one another takes few interruptions, and all orders would be millions.
 */
export async function exploreOperators(scene: OperatorScene): Promise<Exploration> {
  const { before, acts, failures = 0, interruptions = 2, publishAfter, judge } = scene
  const registry = openRegistry()
  try {
    await before(createProcess(registry.store, { newest }))
    registry.keep()
    return await explore((stage): Scene => {
      registry.reset()
      const watched = watchGroups(registry.store)
      const turns = takeTurns(interruptions)
      const log = { newest }
      let failuresLeft = failures
      const actors = Object.entries(acts).map(([name, act], i) => {
        const said = Promise.withResolvers<'said'>()
        let [hasSaid, isDead] = [false, false]
        // Of nobody else's, and the same in each order of the steps.
        let lastId = 1000 * (i + 1)
        const store = intercept(registry.store, async call => {
          if (isDead) throw new StoreError('unavailable', 'the process is dead')
          // What it does from then on is to make its answer.
          if (hasSaid) return new Promise(() => {})
          if (call.operation === 'takeIds') {
            lastId += Number(call.args[1])
            return lastId - Number(call.args[1]) + 1
          }
          const turn = turns.askFor(name)
          return stage.step(name, `${call.operation} ${JSON.stringify(call.args)}`, () => {
            if (!turn.isPossible()) return {}
            const run = (fate: Fate) => () => {
              turn.take()
              if (fate !== 'done') {
                failuresLeft--
                isDead = true
              }
              return meet(fate, { ...call, run: () => watched.watch(call) })
            }
            const done = { done: run('done') }
            return failuresLeft === 0
              ? done
              : { ...done, 'lost request': run('lost request'), 'lost answer': run('lost answer') }
          })
        })
        const core = createProcess(store, log, changed => {
          if (changed !== groupName) return
          hasSaid = true
          said.resolve('said')
        })
        const perform = async () => {
          const result = await Promise.race([act(core), said.promise])
          if (name === publishAfter) log.newest = newest + publishedLater
          return result
        }
        return [name, perform] as const
      })
      return {
        actors: Object.fromEntries(actors),
        world: () => [registry.dump(), watched.untold(), failuresLeft, turns.state(), log],
        async judge(results) {
          const hasFailed = failuresLeft < failures
          for (const result of Object.values(results)) {
            if (result instanceof Error && !(hasFailed && result instanceof StoreError)) throw result
          }
          const core = createProcess(intercept(registry.store, watched.watch), log)
          for (const awake of await core.store.listAwakeGroups()) await rebalance(core, awake.groupName)
          assert.deepEqual(watched.untold(), [], 'consumers were not told of queues that came or went')
          await judge({ core, results, hasFailed })
        },
      }
    })
  } finally {
    await registry.close()
  }
}

/** Who may go on. What one asks for at once is done in the order in which it was asked. */
function takeTurns(interruptions: number) {
  const waiting = new Map<string, object[]>()
  let present = ''
  let left = interruptions
  const isInterrupting = (name: string) => name !== present && (waiting.get(present)?.length ?? 0) > 0
  return {
    state: () => [present, left],
    askFor(name: string) {
      const turn = {
        isPossible: () => waiting.get(name)?.[0] === turn && (left > 0 || !isInterrupting(name)),
        take() {
          if (isInterrupting(name)) left--
          present = name
          waiting.get(name)?.shift()
        },
      }
      waiting.set(name, [...(waiting.get(name) ?? []), turn])
      return turn
    },
  }
}

/** Who may pull which queue, by group. */
const worksOn = ({ subscriptions, offsets }: GroupSnapshot) => {
  const subscribed = new Set(subscriptions.map(({ topicName }) => topicName))
  return offsets
    .filter(({ topicName, consumerId, nextConsumerId }) => {
      return subscribed.has(topicName) && consumerId !== 0 && nextConsumerId === undefined
    })
    .map(({ queueId, consumerId }) => `${queueId}:${consumerId}`)
    .join()
}

/** Watches the groups from beneath: no version falls, and whenever other queues are someone's, `rbVersion` rises after it. */
function watchGroups(store: Store) {
  const told = new Map<string, { rbVersion: number; version: number; worksOn: string }>()
  const untold = new Set<string>()
  const look = async () => {
    const names = await store.listGroups({ limit: 100 })
    const origins = await Promise.all(names.map(name => store.readGroup(name)))
    const copies = origins.flatMap(origin => origin?.copies ?? []).map(({ copyName }) => store.readGroup(copyName))
    const found = [...origins, ...(await Promise.all(copies))].filter(each => each !== undefined)
    const there = new Set(found.map(({ group }) => group.name))
    for (const name of told.keys()) {
      if (there.has(name)) continue
      told.delete(name)
      untold.delete(name)
    }
    for (const snapshot of found) {
      const { name, rbVersion, version } = snapshot.group
      const before = told.get(name)
      const now = { rbVersion, version, worksOn: worksOn(snapshot) }
      if (before && now.rbVersion === before.rbVersion && now.worksOn !== before.worksOn) untold.add(name)
      else if (!before || now.rbVersion > before.rbVersion) {
        untold.delete(name)
        told.set(name, now)
      } else if (now.worksOn === before.worksOn) untold.delete(name)
      if (before) assert.ok(version >= before.version && rbVersion >= before.rbVersion, 'a version fell')
    }
  }
  return {
    untold: () => [...untold],
    async watch(call: Call): Promise<unknown> {
      if (told.size === 0) await look()
      const answer = await call.run()
      if (!call.operation.startsWith('read')) await look()
      return answer
    },
  }
}
