import { type Context, holds } from './conditions.ts'
import { matchesPattern } from './patterns.ts'
import type { Patterns, Principals, Statement } from './policy.ts'

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
    ...ofResource.filter(statement => applies(statement, request) && isAbout(statement.principals, request.principal)),
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

function isAbout(principals: Principals | undefined, principal: Principal): boolean {
  if (principals === undefined || principals === 'anyone') return principals === 'anyone'
  return 'service' in principal
    ? principals.services.includes(principal.service)
    : // The account itself as principal lets its policies decide, and allows nothing by that.
      principals.arns.includes(principal.roleArn)
}
