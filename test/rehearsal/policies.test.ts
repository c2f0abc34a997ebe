import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { type AccessRequest, evaluate } from '../../rehearsal/iam/evaluate.ts'
import { parsePolicy } from '../../rehearsal/iam/policy.ts'

/** The rules as AWS writes them down: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html */

const table = 'arn:aws:dynamodb:us-east-1:000000000000:table/t'
const roleArn = 'arn:aws:iam::000000000000:role/r'
const role = { roleArn }
const events = { service: 'events.amazonaws.com' }

type Case = {
  ofRole?: object[]
  ofResource?: object[]
  request?: Partial<AccessRequest>
}

function decide({ ofRole = [], ofResource = [], request = {} }: Case): string {
  const whole = { principal: role, action: 'dynamodb:GetItem', resource: table, context: {}, ...request }
  const parse = (statements: object[]) => parsePolicy({ Version: '2012-10-17', Statement: statements }, 'holder')
  return evaluate(whole, parse(ofRole), parse(ofResource)).outcome
}

const allow = { Effect: 'Allow', Action: 'dynamodb:GetItem', Resource: table }
const deny = { Effect: 'Deny', Action: 'dynamodb:GetItem', Resource: table }
const [allowed, notAllowed, denied] = ['allowed', 'not allowed', 'denied explicitly']

suite('a request', () => {
  const cases: [string, string, Case][] = [
    ['is refused where nothing says otherwise', notAllowed, {}],
    ['is allowed by a statement of the role', allowed, { ofRole: [allow] }],
    ['is refused by a statement that denies, wherever it stands', denied, { ofRole: [allow, deny] }],
    [
      'is refused by the resource, whatever the role may',
      denied,
      { ofRole: [allow], ofResource: [{ ...deny, Principal: '*' }] },
    ],
    [
      'is allowed by the resource alone, to the role that it names',
      allowed,
      { ofResource: [{ ...allow, Principal: { AWS: roleArn } }] },
    ],
    [
      'is not allowed by a resource that names another role',
      notAllowed,
      { ofResource: [{ ...allow, Principal: { AWS: `${roleArn}2` } }] },
    ],
    [
      'is not allowed by a resource that names the account: the role needs a statement of its own',
      notAllowed,
      { ofResource: [{ ...allow, Principal: { AWS: 'arn:aws:iam::000000000000:root' } }] },
    ],
    [
      'is refused by a resource that denies the account',
      denied,
      { ofRole: [allow], ofResource: [{ ...deny, Principal: { AWS: '000000000000' } }] },
    ],
    ['of a service is none of the role', notAllowed, { ofRole: [allow], request: { principal: events } }],
    [
      'of a service is allowed by a resource that names it',
      allowed,
      { ofResource: [{ ...allow, Principal: { Service: events.service } }], request: { principal: events } },
    ],
    [
      'of a service is not allowed by a resource that names another one',
      notAllowed,
      { ofResource: [{ ...allow, Principal: { Service: 'sns.amazonaws.com' } }], request: { principal: events } },
    ],
    ['matches an action without regard to case', allowed, { ofRole: [{ ...allow, Action: 'DynamoDB:getitem' }] }],
    ['matches a resource with regard to case', notAllowed, { ofRole: [{ ...allow, Resource: table.toUpperCase() }] }],
    ['matches * in an action', allowed, { ofRole: [{ ...allow, Action: 'dynamodb:Get*' }] }],
    ['matches ? in an action as one character', notAllowed, { ofRole: [{ ...allow, Action: 'dynamodb:Get?' }] }],
    ['matches * in a resource', allowed, { ofRole: [{ ...allow, Resource: 'arn:aws:dynamodb:*:*:table/*' }] }],
    ['does not match a table as its index', notAllowed, { ofRole: [allow], request: { resource: `${table}/index/i` } }],
    [
      'matches one of several',
      allowed,
      { ofRole: [{ ...allow, Action: ['a:b', 'dynamodb:GetItem'], Resource: [`${table}2`, table] }] },
    ],
    [
      'matches NotAction where the action is another one',
      allowed,
      { ofRole: [{ Effect: 'Allow', NotAction: 'dynamodb:PutItem', Resource: table }] },
    ],
    [
      'does not match NotAction of its action',
      notAllowed,
      { ofRole: [{ Effect: 'Allow', NotAction: 'dynamodb:Get*', Resource: table }] },
    ],
    [
      'matches NotResource where the resource is another one',
      allowed,
      { ofRole: [{ Effect: 'Allow', Action: '*', NotResource: `${table}2` }] },
    ],
    [
      'does not match NotResource of its resource',
      notAllowed,
      { ofRole: [{ Effect: 'Allow', Action: '*', NotResource: '*' }] },
    ],
  ]
  for (const [what, expected, scenario] of cases) {
    test(what, () => assert.equal(decide(scenario), expected))
  }
})

suite('a condition', () => {
  const key = 'dynamodb:LeadingKeys'
  const sourceArn = 'arn:aws:events:us-east-1:000000000000:rule/bus/name'
  const cases: [string, boolean, object, Record<string, string[]>][] = [
    ['StringEquals holds for the value', true, { StringEquals: { [key]: 'a' } }, { [key]: ['a'] }],
    ['StringEquals holds for one of several', true, { StringEquals: { [key]: ['b', 'a'] } }, { [key]: ['a'] }],
    ['StringEquals looks at case', false, { StringEquals: { [key]: 'A' } }, { [key]: ['a'] }],
    ['StringEqualsIgnoreCase does not', true, { StringEqualsIgnoreCase: { [key]: 'A' } }, { [key]: ['a'] }],
    ['StringEquals does not hold for what is not there', false, { StringEquals: { [key]: 'a' } }, {}],
    ['StringEqualsIfExists does', true, { StringEqualsIfExists: { [key]: 'a' } }, {}],
    [
      'StringEqualsIfExists does not hold for another value',
      false,
      { StringEqualsIfExists: { [key]: 'a' } },
      { [key]: ['b'] },
    ],
    ['StringNotEquals holds for what is not there', true, { StringNotEquals: { [key]: 'a' } }, {}],
    ['StringNotEquals holds for none of several', false, { StringNotEquals: { [key]: ['a', 'b'] } }, { [key]: ['b'] }],
    ['StringLike has wildcards', true, { StringLike: { [key]: 'a*c?' } }, { [key]: ['abbcd'] }],
    ['StringEquals has none', false, { StringEquals: { [key]: 'a*' } }, { [key]: ['ab'] }],
    ['StringNotLike is its contrary', false, { StringNotLike: { [key]: 'a*' } }, { [key]: ['ab'] }],
    ['a key has no case', true, { StringEquals: { 'DYNAMODB:leadingkeys': 'a' } }, { [key]: ['a'] }],
    [
      'all operators have to hold',
      false,
      { StringLike: { [key]: 'a*' }, StringEquals: { [key]: 'b' } },
      { [key]: ['a'] },
    ],
    ['all keys have to hold', false, { StringEquals: { [key]: 'a', other: 'b' } }, { [key]: ['a'] }],
    ['Bool holds for true', true, { Bool: { 'aws:SecureTransport': 'true' } }, { 'aws:securetransport': ['true'] }],
    [
      'Bool does not hold for the other',
      false,
      { Bool: { 'aws:SecureTransport': 'false' } },
      { 'aws:securetransport': ['true'] },
    ],
    ['Null is true for what is not there', true, { Null: { [key]: 'true' } }, {}],
    ['Null is false for what is there', true, { Null: { [key]: 'false' } }, { [key]: ['a'] }],
    [
      'ArnLike has wildcards within the parts',
      true,
      { ArnLike: { k: 'arn:aws:events:*:*:rule/bus/*' } },
      { k: [sourceArn] },
    ],
    ['ArnLike has none over the parts', false, { ArnLike: { k: 'arn:aws:*:*:*:name' } }, { k: [sourceArn] }],
    [
      'ArnEquals is the same as ArnLike',
      true,
      { ArnEquals: { k: 'arn:aws:events:*:*:rule/bus/*' } },
      { k: [sourceArn] },
    ],
    ['ArnNotLike is its contrary', false, { ArnNotLike: { k: 'arn:*:*:*:*:*' } }, { k: [sourceArn] }],
    ['NumericLessThan compares numbers', true, { NumericLessThan: { k: '10' } }, { k: ['9'] }],
    ['NumericGreaterThanEquals as well', false, { NumericGreaterThanEquals: { k: '10' } }, { k: ['9'] }],
    [
      'ForAllValues holds where each fits one',
      true,
      { 'ForAllValues:StringEquals': { [key]: ['a', 'b'] } },
      { [key]: ['a', 'b', 'a'] },
    ],
    [
      'ForAllValues does not hold where one fits none',
      false,
      { 'ForAllValues:StringEquals': { [key]: ['a'] } },
      { [key]: ['a', 'b'] },
    ],
    ['ForAllValues holds for what is not there', true, { 'ForAllValues:StringEquals': { [key]: ['a'] } }, {}],
    ['ForAnyValue holds where one fits', true, { 'ForAnyValue:StringEquals': { [key]: ['a'] } }, { [key]: ['b', 'a'] }],
    ['ForAnyValue does not hold for what is not there', false, { 'ForAnyValue:StringEquals': { [key]: ['a'] } }, {}],
    [
      'ForAnyValue of a negation holds where one is another',
      true,
      { 'ForAnyValue:StringNotEquals': { [key]: ['a'] } },
      { [key]: ['a', 'b'] },
    ],
    [
      'ForAllValues of a negation wants that of all',
      false,
      { 'ForAllValues:StringNotEquals': { [key]: ['a'] } },
      { [key]: ['a', 'b'] },
    ],
  ]
  for (const [what, expected, Condition, values] of cases) {
    test(what, () => {
      const context = Object.fromEntries(Object.entries(values).map(([name, list]) => [name.toLowerCase(), list]))
      assert.equal(decide({ ofRole: [{ ...allow, Condition }], request: { context } }), expected ? allowed : notAllowed)
    })
  }

  test('without a quantifier on a key of several values is refused: AWS says nothing of it', () => {
    const request = { context: { k: ['a', 'b'] } }
    assert.throws(
      () => decide({ ofRole: [{ ...allow, Condition: { StringEquals: { k: 'a' } } }], request }),
      /k has several values/,
    )
  })
})

suite('what the evaluator does not know is refused', () => {
  const cases: [string, object, RegExp][] = [
    ['an operator', { Condition: { IpAddress: { 'aws:SourceIp': '10.0.0.0/8' } } }, /condition operator IpAddress/],
    ['a policy variable', { Resource: 'arn:aws:s3:::b/$' + '{aws:username}' }, /policy variables/],
    ['half an ARN', { Resource: 'arn:*:table/t' }, /a resource is \* or an ARN of six parts/],
    ['an element', { NotPrincipal: '*' }, /NotPrincipal/],
    ['a kind of principal', { Principal: { Federated: 'x' } }, /Federated/],
    [
      'a quantifier with IfExists',
      { Condition: { 'ForAnyValue:StringLikeIfExists': { k: 'a' } } },
      /a quantifier with IfExists/,
    ],
    ['an effect', { Effect: 'allow' }, /Effect .* is allow; it may be Allow or Deny/],
  ]
  for (const [what, change, expected] of cases) {
    test(`${what}: ${JSON.stringify(change)}`, () =>
      assert.throws(() => decide({ ofRole: [{ ...allow, ...change }] }), expected))
  }
})
