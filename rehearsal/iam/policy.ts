import { asList, asRecord, asText, asTexts, expectOnly } from '../template/read.ts'
import { type Condition, parseConditions } from './conditions.ts'

/** Whom a statement of a resource's policy is about. */
export type Principals = 'anyone' | { arns: string[]; services: string[] }

/** Patterns of which one has to fit, or none (`NotAction`, `NotResource`). */
export type Patterns = { of: string[]; isNegated: boolean }

export type Statement = {
  /** Whose policy it stands in, for reports. */
  holder: string
  effect: 'Allow' | 'Deny'
  /** Only in a resource's policy. */
  principals?: Principals
  actions: Patterns
  resources: Patterns
  conditions: Condition[]
  /** AWS has it by itself: nobody has granted it. */
  isImplied?: true
}

const elements = ['Sid', 'Effect', 'Principal', 'Action', 'NotAction', 'Resource', 'NotResource', 'Condition'] as const

/** The statements of a policy document. What the evaluator would not understand is refused. */
export function parsePolicy(document: unknown, holder: string): Statement[] {
  const policy = asRecord(document, `the policy of ${holder}`)
  expectOnly(policy, `the policy of ${holder}`, ['Version', 'Id', 'Statement'])
  return asList(policy.Statement).map(statement => parseStatement(statement, holder))
}

function parseStatement(value: unknown, holder: string): Statement {
  const place = `a statement of ${holder}`
  const statement = asRecord(value, place)
  expectOnly(statement, place, elements)
  const { Effect, Principal, Action, NotAction, Resource, NotResource, Condition } = statement
  const effect = asText(Effect, place)
  if (effect !== 'Allow' && effect !== 'Deny')
    throw new Error(`Effect of ${place} is ${effect}; it may be Allow or Deny`)
  return {
    holder,
    effect,
    ...(Principal !== undefined && { principals: parsePrincipals(Principal, place) }),
    actions: parsePatterns(Action, NotAction, place),
    resources: parseResources(Resource, NotResource, place),
    conditions: parseConditions(Condition ?? {}, place),
  }
}

function parseResources(of: unknown, not: unknown, place: string): Patterns {
  // A role's trust policy names no resource: it is about the role.
  if (of === undefined && not === undefined) return { of: ['*'], isNegated: false }
  const patterns = parsePatterns(of, not, place)
  const short = patterns.of.find(pattern => pattern !== '*' && pattern.split(':').length < 6)
  if (short !== undefined) throw new Error(`${place} names ${short}; a resource is * or an ARN of six parts`)
  return patterns
}

function parsePatterns(of: unknown, not: unknown, place: string): Patterns {
  const isNegated = of === undefined
  const patterns = asTexts(isNegated ? not : of, place)
  // Policy variables would have to be filled in by what the request says; none of ours has any.
  const variable = patterns.find(pattern => pattern.includes('${'))
  if (variable !== undefined) throw new Error(`the rehearsal does not know policy variables: ${variable} in ${place}`)
  return { of: patterns, isNegated }
}

function parsePrincipals(value: unknown, place: string): Principals {
  if (value === '*') return 'anyone'
  const principal = asRecord(value, place)
  expectOnly(principal, `Principal in ${place}`, ['AWS', 'Service'])
  const arns = asTexts(principal.AWS, place)
  return arns.includes('*') ? 'anyone' : { arns, services: asTexts(principal.Service, place) }
}
