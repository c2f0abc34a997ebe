import { matchesAction } from './evaluate.ts'
import { matchesPattern } from './patterns.ts'
import type { Statement } from './policy.ts'

/** One action on one resource that a statement allows. */
export type Grant = { holder: string; action: string; resource: string }
/** A call that no policy allowed, and how often. */
export type Refusal = { caller: string; action: string; resource: string; times: number }

/** Remembers which grants were used, and which calls had none. */
export function createLedger(statements: Statement[]) {
  const grants = new Map(
    statements
      .filter(({ effect, isImplied }) => effect === 'Allow' && !isImplied)
      .flatMap(statement => grantsOf(statement))
      .map(grant => [keyOf(grant), grant]),
  )
  const usedKeys = new Set<string>()
  const refusals = new Map<string, Refusal>()

  return {
    used(by: Statement[], action: string, resource: string): void {
      for (const statement of by) {
        for (const grant of grantsOf(statement)) {
          if (matchesAction(grant.action, action) && matchesPattern(grant.resource, resource))
            usedKeys.add(keyOf(grant))
        }
      }
    },
    refused(caller: string, action: string, resource: string): void {
      const key = `${caller} ${action} ${resource}`
      const refusal = refusals.get(key) ?? { caller, action, resource, times: 0 }
      refusals.set(key, { ...refusal, times: refusal.times + 1 })
    },
    refusals: () => [...refusals.values()],
    unused: () => [...grants].filter(([key]) => !usedKeys.has(key)).map(([, grant]) => grant),
  }
}

function grantsOf({ holder, actions, resources }: Statement): Grant[] {
  if (actions.isNegated || resources.isNegated) {
    throw new Error(`the rehearsal cannot tell what of NotAction or NotResource is used (${holder})`)
  }
  return actions.of.flatMap(action => resources.of.map(resource => ({ holder, action, resource })))
}

const keyOf = ({ holder, action, resource }: Grant) => `${holder} ${action} ${resource}`
