import { type Context, holds } from './conditions.ts'
import { matchesPattern } from './patterns.ts'
import type { Patterns, Statement } from './policy.ts'

/** Who asks: a function by its role, or a service of AWS. All of them are of one account. */
export type Principal = { roleArn: string } | { service: string }

export type AccessRequest = { principal: Principal; action: string; resource: string; context: Context }

export type Verdict = {
  outcome: 'allowed' | 'denied explicitly' | 'not allowed'
  /** The statements that decided it. */
  by: Statement[]
}

/**
 * Decides as IAM does within one account: a statement that denies wins; else one that allows is needed, of the role or of
 * the resource. A service has no policy of its own: only the resource's can allow it.
 */
export function evaluate(request: AccessRequest, ofRole: Statement[], ofResource: Statement[]): Verdict {
  const ofCaller = 'roleArn' in request.principal ? ofRole : []
  const applying = [
    ...ofCaller.filter(statement => applies(statement, request)),
    ...ofResource.filter(statement => applies(statement, request) && isAbout(statement, request.principal)),
  ]
  const denying = applying.filter(({ effect }) => effect === 'Deny')
  if (denying.length > 0) return { outcome: 'denied explicitly', by: denying }
  return applying.length > 0 ? { outcome: 'allowed', by: applying } : { outcome: 'not allowed', by: [] }
}

function applies({ actions, resources, conditions }: Statement, { action, resource, context }: AccessRequest): boolean {
  return (
    fits(actions, pattern => matchesAction(pattern, action)) &&
    fits(resources, pattern => matchesPattern(pattern, resource)) &&
    conditions.every(condition => holds(condition, context))
  )
}

/** Actions are told apart without regard to case. */
export const matchesAction = (pattern: string, action: string) =>
  matchesPattern(pattern.toLowerCase(), action.toLowerCase())

const fits = ({ of, isNegated }: Patterns, matches: (pattern: string) => boolean) => of.some(matches) !== isNegated

function isAbout({ principals, effect }: Statement, principal: Principal): boolean {
  if (principals === undefined || principals === 'anyone') return principals === 'anyone'
  if ('service' in principal) return principals.services.includes(principal.service)
  // Who names an account denies all who are of it, but allows nothing by that: it lets the account's own policies decide.
  const accountId = principal.roleArn.split(':')[4] ?? ''
  const isOfAccount = principals.arns.some(arn => arn === accountId || arn.endsWith(`:${accountId}:root`))
  return principals.arns.includes(principal.roleArn) || (effect === 'Deny' && isOfAccount)
}
