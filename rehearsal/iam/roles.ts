import { asList, asRecord, asText, asTexts, expectOnly } from '../template/read.ts'
import type { Resolved, Stack } from '../template/stack.ts'
import { evaluate } from './evaluate.ts'
import { parsePolicy, type Statement } from './policy.ts'

/** The statements of every role of the template, by the role's ARN. */
export function readRoles(stack: Stack): Map<string, Statement[]> {
  const roles = stack.all('AWS::IAM::Role')
  const ofRoles = new Map(roles.map(role => [role.arn, inlinePolicies(role)]))
  const byName = new Map(roles.map(role => [role.ref, role]))

  for (const policy of [...stack.all('AWS::IAM::Policy'), ...stack.all('AWS::IAM::ManagedPolicy')]) {
    expectOnly(policy.properties, policy.id, [
      'PolicyDocument',
      'PolicyName',
      'ManagedPolicyName',
      'Description',
      'Path',
      'Roles',
    ])
    for (const name of asTexts(policy.properties.Roles, policy.id)) attach(name, policy)
  }
  for (const role of roles) {
    for (const arn of asTexts(role.properties.ManagedPolicyArns, role.id)) {
      const policy = stack.all('AWS::IAM::ManagedPolicy').find(({ ref }) => ref === arn)
      if (!policy) throw new Error(`the rehearsal does not know the managed policy ${arn} of ${role.id}`)
      attach(role.ref, policy)
    }
  }
  return ofRoles

  function attach(roleName: string, policy: Resolved): void {
    const role = byName.get(roleName)
    if (!role) throw new Error(`${policy.id} is for the role ${roleName}, which the template does not have`)
    ofRoles.get(role.arn)?.push(...parsePolicy(policy.properties.PolicyDocument, role.ref))
  }
}

function inlinePolicies(role: Resolved): Statement[] {
  const known = ['AssumeRolePolicyDocument', 'Policies', 'ManagedPolicyArns', 'RoleName', 'Description', 'Path', 'Tags']
  expectOnly(role.properties, role.id, known)
  return asList(role.properties.Policies).flatMap(policy =>
    parsePolicy(asRecord(policy, role.id).PolicyDocument, role.ref),
  )
}

/** Fails where Lambda may not take the role: the function would not start. */
export function expectAssumable(stack: Stack, roleArn: string, functionName: string): void {
  const role = stack.all('AWS::IAM::Role').find(({ arn }) => arn === roleArn)
  if (!role) throw new Error(`${functionName} has the role ${roleArn}, which the template does not have`)
  const trust = parsePolicy(role.properties.AssumeRolePolicyDocument, asText(role.id, 'role'))
  const request = {
    principal: { service: 'lambda.amazonaws.com' },
    action: 'sts:AssumeRole',
    resource: roleArn,
    context: {},
  }
  if (evaluate(request, [], trust).outcome !== 'allowed')
    throw new Error(`Lambda may not assume the role of ${functionName}`)
}
