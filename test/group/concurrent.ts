import assert from 'node:assert/strict'
import { rebalance } from '../../core/group/rebalance.ts'
import type { Store } from '../../core/store.ts'
import { tick } from '../../core/tick/tick.ts'
import { type Exploration, explore, type Scene } from '../core/explore.ts'
import { type Fate, intercept, meet } from '../core/scripted-store.ts'
import { createContainer } from '../log/containers.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { assertSettled, nowMs, openRegistry, read, watchGroup } from './groups.ts'

export type GroupScene = {
  /** What there is before. */
  before: (store: Store) => Promise<void>
  /** Each changes something in one or more operations, and has the group rebalanced, as the use cases do. */
  changes: ((store: Store) => Promise<void>)[]
  /** How many operations may fail, each in a way of its own, and with it whoever called it; a tick comes after. */
  failures?: number
}

const clock = createManualClock(nowMs)

/** Plays all orders of the operations of several changes and of the rebalances that follow them. */
export async function exploreGroup({ before, changes, failures = 0 }: GroupScene): Promise<Exploration> {
  const registry = openRegistry()
  try {
    await before(registry.store)
    registry.keep()
    return await explore((stage): Scene => {
      registry.reset()
      const { seen, watch } = watchGroup(registry.store)
      let failuresLeft = failures
      let hasFailed = false
      const storeOf = (mind: string) =>
        intercept(registry.store, call =>
          stage.step(mind, `${call.operation} ${JSON.stringify(call.args)}`, () => {
            const run = (fate: Fate) => () => {
              if (fate !== 'done') failuresLeft--
              hasFailed ||= fate !== 'done'
              return meet(fate, { ...call, run: () => watch(call) })
            }
            const done = { done: run('done') }
            return failuresLeft === 0
              ? done
              : { ...done, 'lost request': run('lost request'), 'lost answer': run('lost answer') }
          }),
        )
      const actors = changes.map((change, i) => {
        const store = storeOf(`change ${i}`)
        return [
          `change ${i}`,
          async () => {
            await change(store)
            return rebalance(createContainer(store, { clock }), 'billing')
          },
        ] as const
      })
      return {
        actors: Object.fromEntries(actors),
        world: () => [registry.dump(), seen.isUntold, failuresLeft],
        async judge(results) {
          if (hasFailed) await tick(createContainer(intercept(registry.store, watch), { clock }))
          else for (const result of Object.values(results)) assert.equal(result, 'done')
          assertSettled(await read(registry.store))
          assert.ok(!seen.isUntold, 'consumers were not told of the last move')
        },
      }
    })
  } finally {
    await registry.close()
  }
}
