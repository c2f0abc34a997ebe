import { account } from '../template/account.ts'
import { asText, asTexts, expectOnly } from '../template/read.ts'
import type { Resolved, Stack } from '../template/stack.ts'
import { parsePolicy, type Statement } from './policy.ts'

/** The policies of functions, queues and topics, by the ARN of what they are of. */
export function readResourcePolicies(stack: Stack): Map<string, Statement[]> {
  const policies = new Map<string, Statement[]>()
  const add = (arn: string, statements: Statement[]) => policies.set(arn, [...(policies.get(arn) ?? []), ...statements])

  for (const permission of stack.all('AWS::Lambda::Permission')) {
    const lambda = findFunction(stack, permission)
    add(lambda.arn, parsePolicy(toPolicy(permission, lambda.arn), lambda.ref))
  }
  for (const { id, properties } of stack.all('AWS::SQS::QueuePolicy')) {
    expectOnly(properties, id, ['Queues', 'PolicyDocument'])
    for (const url of asTexts(properties.Queues, id)) {
      const queue = stack.all('AWS::SQS::Queue').find(({ ref }) => ref === url)
      if (!queue) throw new Error(`${id} is for ${url}, which is no queue of the template`)
      add(queue.arn, parsePolicy(properties.PolicyDocument, queue.id))
    }
  }
  for (const { id, properties } of stack.all('AWS::SNS::TopicPolicy')) {
    expectOnly(properties, id, ['Topics', 'PolicyDocument'])
    for (const arn of asTexts(properties.Topics, id)) add(arn, parsePolicy(properties.PolicyDocument, arn))
  }
  for (const topic of stack.all('AWS::SNS::Topic')) {
    if (!policies.has(topic.arn)) add(topic.arn, [defaultOfTopics(topic)])
  }
  return policies
}

function findFunction(stack: Stack, { id, properties }: Resolved): Resolved {
  const named = asText(properties.FunctionName, id)
  const lambda = stack.all('AWS::Lambda::Function').find(({ ref, arn }) => named === ref || named === arn)
  if (!lambda) throw new Error(`${id} is for ${named}, which is no function of the template`)
  return lambda
}

/** What Lambda makes of a permission. */
function toPolicy({ id, properties }: Resolved, functionArn: string) {
  expectOnly(properties, id, ['Action', 'FunctionName', 'Principal', 'SourceArn', 'SourceAccount'])
  const { Action, Principal, SourceArn, SourceAccount } = properties
  const principal = asText(Principal, id)
  return {
    Statement: {
      Effect: 'Allow',
      Principal: principal === '*' ? '*' : principal.startsWith('arn:') ? { AWS: principal } : { Service: principal },
      Action,
      Resource: functionArn,
      Condition: {
        ...(SourceArn !== undefined && { ArnLike: { 'aws:SourceArn': SourceArn } }),
        ...(SourceAccount !== undefined && { StringEquals: { 'aws:SourceAccount': SourceAccount } }),
      },
    },
  }
}

/** A topic without a policy has this one: whatever belongs to its account may publish. A policy of its own replaces it. */
function defaultOfTopics({ arn, id }: Resolved): Statement {
  const owner = {
    operator: 'StringEquals',
    quantifier: undefined,
    isIfExists: false,
    key: 'aws:sourceowner',
    values: [account.id],
  }
  return {
    holder: id,
    effect: 'Allow',
    principals: 'anyone',
    actions: { of: ['sns:Publish'], isNegated: false },
    resources: { of: [arn], isNegated: false },
    conditions: [owner],
    isImplied: true,
  }
}
