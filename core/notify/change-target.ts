import type { Core } from '../core.ts'
import { fullJitterMs } from '../protocol/backoff.ts'
import { StoreError } from '../store.ts'
import type { Step } from './steps.ts'
import type { Target, TargetRef } from './target.ts'

/** Containers that hear of one target's queues at once get in each other's way. */
const maxTries = 12
const backoff = { baseMs: 10, maxMs: 200 }

type Parts = Pick<Core, 'store' | 'clock' | 'random'>

/** Replaces a target by what follows from it, again where somebody has come in between. Undefined: it was removed. */
export async function replaceTarget(
  { store, clock, random }: Parts,
  read: Target | undefined,
  decide: (target: Target) => Target,
): Promise<Target | undefined> {
  let target = read
  for (let tries = 0; target; tries++) {
    const decided = decide(target)
    if (decided === target) return target
    const next = { ...decided, revision: target.revision + 1 }
    const answer = await store.replaceTarget(next)
    if (answer.outcome === 'replaced') return next
    target = answer.current
    if (tries === maxTries) throw new StoreError('throttled', 'a target is changed by too many at once')
    if (tries > 0) await clock.sleep(fullJitterMs(backoff, tries, random))
  }
  return undefined
}

/** A decision, and the target as it is by it. */
export type Decided<S extends Step> = { step: S; target: Target }

/** Decides what to do about a target. Undefined: it was removed. */
export async function stepTarget<S extends Step>(
  parts: Parts,
  read: Target,
  decide: (target: Target, nowMs: number) => S,
): Promise<Decided<S> | undefined> {
  let step: S | undefined
  const target = await replaceTarget(parts, read, each => {
    step = decide(each, parts.clock.now())
    return step.next ? { ...each, state: step.next } : each
  })
  return target && step && { step, target }
}

export async function readTarget({ store }: Pick<Core, 'store'>, ref: TargetRef): Promise<Target | undefined> {
  return (await store.readTargets(ref.owner)).find(({ name }) => name === ref.name)
}
