import { account } from '../template/account.ts'
import type { Stack } from '../template/stack.ts'
import { type AccessRequest, evaluate, type Principal } from './evaluate.ts'
import { createLedger, type Grant, type Refusal } from './ledger.ts'
import type { Statement } from './policy.ts'
import { readResourcePolicies } from './resource-policies.ts'
import { readRoles } from './roles.ts'

export type Caller = {
  /** For people: a function, a rule. */
  name: string
  principal: Principal
}

export type Access = {
  /** Asks whether the call may be made, and remembers it; the text of a refusal is that of AWS. */
  ask(caller: Caller, action: string, resource: string, context?: AccessRequest['context']): { refusal?: string }
  refusals(): Refusal[]
  unusedGrants(): Grant[]
}

/** All policies of the template, and what became of the calls that were asked about. */
export function createAccess(stack: Stack): Access {
  const roles = readRoles(stack)
  const ofResources = readResourcePolicies(stack)
  const statements = [...roles.values(), ...ofResources.values()].flat()
  for (const statement of statements) expectKnownKeys(statement)
  const ledger = createLedger(statements)

  return {
    ask(caller, action, resource, context = {}) {
      const { principal } = caller
      const ofRole = 'roleArn' in principal ? (roles.get(principal.roleArn) ?? []) : []
      const request = { principal, action, resource, context: { ...context, ...always(principal) } }
      const { outcome, by } = evaluate(request, ofRole, ofResources.get(resource) ?? [])
      if (outcome === 'allowed') {
        ledger.used(by, action, resource)
        return {}
      }
      ledger.refused(caller.name, action, resource)
      const because =
        outcome === 'denied explicitly'
          ? `with an explicit deny in the policy of ${by[0]?.holder}`
          : `because no ${'service' in principal ? 'resource' : 'identity'}-based policy allows the ${action} action`
      return {
        refusal: `${nameOf(caller)} is not authorized to perform: ${action} on resource: ${resource} ${because}`,
      }
    },
    refusals: ledger.refusals,
    unusedGrants: ledger.unused,
  }
}

/** A condition on anything else would be decided by its absence, which AWS may see otherwise. */
const knownKeys = [
  'aws:principalaccount',
  'aws:principalarn',
  'aws:requestedregion',
  'aws:securetransport',
  'aws:sourceaccount',
  'aws:sourcearn',
  'aws:sourceowner',
  'dynamodb:leadingkeys',
  'events:detail-type',
  'events:source',
]

function expectKnownKeys({ holder, conditions }: Statement): void {
  for (const { key } of conditions) {
    if (knownKeys.includes(key)) continue
    throw new Error(
      `the rehearsal does not know the condition key ${key} of ${holder}; it knows ${knownKeys.join(', ')}`,
    )
  }
}

/** What AWS knows of every request of ours. On AWS the SDK speaks TLS, which it does not on one machine. */
function always(principal: Principal): AccessRequest['context'] {
  const common = { 'aws:securetransport': ['true'], 'aws:requestedregion': [account.region] }
  if ('service' in principal) return { ...common, 'aws:sourceaccount': [account.id] }
  return { ...common, 'aws:principalarn': [principal.roleArn], 'aws:principalaccount': [account.id] }
}

const nameOf = ({ name, principal }: Caller) =>
  'service' in principal
    ? `Service: ${principal.service} (${name})`
    : `User: ${principal.roleArn.replace(':iam:', ':sts:').replace(':role/', ':assumed-role/')}/${name}`
