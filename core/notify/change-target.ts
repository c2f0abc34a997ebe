import type { Core } from '../core.ts'
import { fullJitterMs } from '../protocol/backoff.ts'
import { StoreError } from '../store.ts'
import type { Step } from './steps.ts'
import type { Target, TargetRef } from './target.ts'

/** Containers that hear of one target's queues at once get in each other's way. */
const maxTries = 12
const backoff = { baseMs: 10, maxMs: 200 }

/** A decision, and the target as it is by it. */
export type Decided<S extends Step> = { step: S; target: Target }

/** Decides about a target, again where somebody has come in between. Undefined: it was removed. */
export async function changeTarget<S extends Step>(
  { store, clock, random }: Pick<Core, 'store' | 'clock' | 'random'>,
  read: Target | undefined,
  decide: (target: Target, nowMs: number) => S,
): Promise<Decided<S> | undefined> {
  let target = read
  for (let tries = 0; target; tries++) {
    const step = decide(target, clock.now())
    if (!step.next) return { step, target }
    const next: Target = { ...target, state: step.next, revision: target.revision + 1 }
    const answer = await store.replaceTarget(next)
    if (answer.outcome === 'replaced') return { step, target: next }
    target = answer.current
    if (tries === maxTries) throw new StoreError('throttled', 'a target is changed by too many at once')
    if (tries > 0) await clock.sleep(fullJitterMs(backoff, tries, random))
  }
  return undefined
}

export async function readTarget({ store }: Pick<Core, 'store'>, ref: TargetRef): Promise<Target | undefined> {
  return (await store.readTargets(ref.owner)).find(({ name }) => name === ref.name)
}
