import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { evaluate, type Principal } from '../../rehearsal/iam/evaluate.ts'
import { parsePolicy } from '../../rehearsal/iam/policy.ts'

/**
 * Our evaluator beside an established one, on policies and requests at random. That one is AGPL-licensed: it is used here,
 * and nothing that is delivered has any of it.
 */
const packageName = '@cloud-copilot/iam-simulate'
const other: { runSimulation: Simulate } | undefined = await import(packageName).catch(() => undefined)

type Policy = { Version: string; Statement: object[] }
type Simulate = (
  simulation: {
    request: {
      principal: string
      action: string
      resource: { resource: string; accountId: string }
      contextVariables: Record<string, string | string[]>
    }
    identityPolicies: { name: string; policy: Policy }[]
    serviceControlPolicies: []
    resourceControlPolicies: []
    resourcePolicy?: Policy
  },
  options: object,
) => Promise<{
  resultType: string
  overallResult?: 'Allowed' | 'ImplicitlyDenied' | 'ExplicitlyDenied'
  errors?: object
}>

const accountId = '123456789012'
const arn = (service: string, rest: string) => `arn:aws:${service}:us-east-1:${accountId}:${rest}`
const roleArns = ['r', 'other'].map(name => `arn:aws:iam::${accountId}:role/${name}`)
const services = ['events.amazonaws.com', 'cloudwatch.amazonaws.com']
const requests = [
  ...['GetItem', 'PutItem', 'Query', 'ConditionCheckItem'].map(name => ({
    action: `dynamodb:${name}`,
    resource: arn('dynamodb', 'table/t'),
  })),
  { action: 'dynamodb:Query', resource: arn('dynamodb', 'table/t/index/i') },
  { action: 'sqs:SendMessage', resource: arn('sqs', 'q') },
  { action: 'sns:Publish', resource: arn('sns', 't') },
  { action: 'events:PutEvents', resource: arn('events', 'event-bus/b') },
  { action: 'lambda:InvokeFunction', resource: arn('lambda', 'function:f') },
]

const some = <T>(...values: T[]) => fc.constantFrom(...values)
const oneOrMore = (each: fc.Arbitrary<string>) => fc.oneof(each, fc.array(each, { minLength: 1, maxLength: 3 }))

/** Exact ones, and with parts of them replaced by wildcards. */
const actionPattern = fc.oneof(
  some(...requests.map(({ action }) => action)),
  some('dynamodb:*', 'dynamodb:Get*', 'dynamodb:?utItem', 'sqs:Send*', 'DYNAMODB:getitem', 'lambda:*', '*'),
)
const resourcePattern = fc.oneof(
  some(...requests.map(({ resource }) => resource)),
  some(
    '*',
    'arn:aws:dynamodb:*:*:table/*',
    arn('dynamodb', 'table/?'),
    arn('dynamodb', 'table/t/index/*'),
    'arn:aws:sqs:us-east-1:*:q',
    'arn:*:*:*:*:t',
    arn('lambda', 'function:*'),
    arn('dynamodb', 'table/T'),
  ),
)

const sourceArns = [arn('events', 'rule/b/one'), arn('events', 'rule/b/two'), arn('cloudwatch', 'alarm:a')]
const arnPattern = fc.oneof(
  some(...sourceArns),
  some('arn:aws:events:*:*:rule/b/*', 'arn:aws:*:us-east-1:*:rule/b/one', 'arn:*:*:*:*:*', arn('events', 'rule/b/t?o')),
)
const keyPattern = some('a', 'b', 'A', 'a*', '?', '*')
const ifExists = some('', '', 'IfExists')
const keyed = (operator: fc.Arbitrary<string>, key: string, values: fc.Arbitrary<string>) =>
  fc.tuple(operator, oneOrMore(values)).map(([name, value]) => ({ [name]: { [key]: value } }))

const stringOperator = some(
  'StringEquals',
  'StringNotEquals',
  'StringLike',
  'StringNotLike',
  'StringEqualsIgnoreCase',
  'StringNotEqualsIgnoreCase',
)
const condition = fc.oneof(
  fc.constant({}),
  fc.constant({}),
  keyed(
    fc.tuple(some('ArnLike', 'ArnEquals', 'ArnNotLike', 'ArnNotEquals'), ifExists).map(parts => parts.join('')),
    'aws:SourceArn',
    arnPattern,
  ),
  keyed(
    fc.tuple(stringOperator, ifExists).map(parts => parts.join('')),
    'aws:SourceAccount',
    some(accountId, '1*', '210987654321'),
  ),
  keyed(
    fc.tuple(some('ForAllValues:', 'ForAnyValue:'), stringOperator).map(parts => parts.join('')),
    'dynamodb:LeadingKeys',
    keyPattern,
  ),
  keyed(fc.constant('Bool'), 'aws:SecureTransport', some('true', 'false')),
  keyed(fc.constant('Null'), 'aws:SourceArn', some('true', 'false')),
  keyed(
    fc
      .tuple(
        some(
          'NumericEquals',
          'NumericNotEquals',
          'NumericLessThan',
          'NumericLessThanEquals',
          'NumericGreaterThan',
          'NumericGreaterThanEquals',
        ),
        ifExists,
      )
      .map(parts => parts.join('')),
    'aws:MultiFactorAuthAge',
    some('9', '10', '11'),
  ),
)

const principal = some<string | object>(
  '*',
  { AWS: '*' },
  ...roleArns.map(AWS => ({ AWS })),
  { AWS: `arn:aws:iam::${accountId}:root` },
  ...services.map(Service => ({ Service })),
  { AWS: roleArns, Service: services },
)

const statement = fc
  .record({
    Effect: some('Allow', 'Allow', 'Allow', 'Deny'),
    actions: oneOrMore(actionPattern),
    isNotAction: some(false, false, false, true),
    resources: oneOrMore(resourcePattern),
    isNotResource: some(false, false, false, true),
    Condition: condition,
  })
  .map(({ Effect, actions, isNotAction, resources, isNotResource, Condition }) => ({
    Effect,
    [isNotAction ? 'NotAction' : 'Action']: actions,
    [isNotResource ? 'NotResource' : 'Resource']: resources,
    ...(Object.keys(Condition).length > 0 && { Condition }),
  }))
const policy = (each: fc.Arbitrary<object>) =>
  fc.array(each, { minLength: 1, maxLength: 3 }).map(Statement => ({ Version: '2012-10-17', Statement }))
const resourceStatement = fc.tuple(statement, principal).map(([rest, Principal]) => ({ ...rest, Principal }))

const context = fc.record(
  {
    'aws:SourceArn': some(...sourceArns),
    'aws:SourceAccount': some(accountId, '210987654321'),
    'aws:SecureTransport': some('true', 'false'),
    'aws:MultiFactorAuthAge': some('9', '10', '11'),
    'dynamodb:LeadingKeys': fc.array(some('a', 'b', 'ab'), { minLength: 1, maxLength: 3 }),
  },
  { requiredKeys: [] },
)

const scenario = fc.record({
  request: some(...requests),
  principal: some<Principal>(
    { roleArn: roleArns[0] ?? '' },
    { roleArn: roleArns[0] ?? '' },
    ...services.map(service => ({ service })),
  ),
  context,
  ofRole: fc.option(policy(statement), { nil: undefined }),
  ofResource: fc.option(policy(resourceStatement), { nil: undefined }),
})

const outcomes = { Allowed: 'allowed', ImplicitlyDenied: 'not allowed', ExplicitlyDenied: 'denied explicitly' } as const

test('decides as an established evaluator does', {
  skip: other ? false : `${packageName} is not installed here`,
}, async t => {
  const compared = { allowed: 0, 'not allowed': 0, 'denied explicitly': 0 }
  await fc.assert(
    fc.asyncProperty(scenario, async ({ request, principal, context, ofRole, ofResource }) => {
      const isRole = 'roleArn' in principal
      // Keys that an action does not have, the other one leaves out.
      const { 'dynamodb:LeadingKeys': leadingKeys, ...global } = context
      const contextVariables: Record<string, string | string[]> = {
        ...global,
        ...(request.action.startsWith('dynamodb:') && leadingKeys && { 'dynamodb:LeadingKeys': leadingKeys }),
      }
      const simulated = await other?.runSimulation(
        {
          request: {
            principal: isRole ? principal.roleArn : principal.service,
            action: request.action,
            resource: { resource: request.resource, accountId },
            contextVariables,
          },
          identityPolicies: ofRole && isRole ? [{ name: 'p', policy: ofRole }] : [],
          serviceControlPolicies: [],
          resourceControlPolicies: [],
          ...(ofResource && { resourcePolicy: ofResource }),
        },
        {},
      )
      assert.ok(simulated?.overallResult, JSON.stringify(simulated))
      const ours = evaluate(
        {
          principal,
          ...request,
          context: Object.fromEntries(
            Object.entries(contextVariables).map(([key, value]) => [key.toLowerCase(), [value].flat()]),
          ),
        },
        ofRole ? parsePolicy(ofRole, 'role') : [],
        ofResource ? parsePolicy(ofResource, 'resource') : [],
      ).outcome
      compared[ours]++
      assert.equal(ours, outcomes[simulated.overallResult])
    }),
    { numRuns: 2_000 },
  )
  t.diagnostic(JSON.stringify(compared))
  for (const [outcome, count] of Object.entries(compared)) assert.ok(count > 50, `${outcome}: only ${count} compared`)
})
