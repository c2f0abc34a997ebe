import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { dynoxide } from '../../rehearsal/engine.ts'
import { lambda, rehearse } from './small-stack.ts'

/** What cannot be rehearsed as it is must not be rehearsed as something else. */
suite('a template that the rehearsal does not know all of is refused', { skip: dynoxide().skip ?? false }, () => {
  const one = lambda('One')
  const withProperty = (more: object) => lambda('One', [], more)
  const queue = (Properties: object = {}) => ({ Queue: { Type: 'AWS::SQS::Queue', Properties } })
  const mapping = {
    Type: 'AWS::Lambda::EventSourceMapping',
    Properties: { EventSourceArn: { 'Fn::GetAtt': ['Queue', 'Arn'] }, FunctionName: { Ref: 'One' } },
  }
  const rule = (Properties: object) => ({ Rule: { Type: 'AWS::Events::Rule', Properties } })

  const cases: [string, Parameters<typeof rehearse>[0], RegExp][] = [
    ['a type', { Vpc: { Type: 'AWS::EC2::VPC' } }, /does not know AWS::EC2::VPC \(Vpc\)/],
    ['a property', withProperty({ VpcConfig: {} }), /does not know VpcConfig of One/],
    ['a runtime', withProperty({ Runtime: 'nodejs18.x' }), /One runs on nodejs18.x; this is Node 24/],
    [
      'a function of CloudFormation',
      withProperty({ Handler: { 'Fn::ImportValue': 'x' } }),
      /does not know Fn::ImportValue/,
    ],
    [
      'a reference to nothing',
      withProperty({ Handler: { Ref: 'Nothing' } }),
      /refers to Nothing, which it does not have/,
    ],
    ['an attribute', withProperty({ Handler: { 'Fn::GetAtt': ['OneRole', 'RoleId'] } }), /attribute RoleId of OneRole/],
    [
      'a role of elsewhere',
      withProperty({ Role: 'arn:aws:iam::000000000000:role/x' }),
      /which the template does not have/,
    ],
    ['a queue of first in, first out', { ...one, ...queue({ FifoQueue: true }) }, /does not know FifoQueue of Queue/],
    [
      'a queue that shows messages again before its function may have ended',
      { ...withProperty({ Timeout: 31 }), ...queue(), Mapping: mapping },
      /Lambda refuses Mapping: the visibility timeout of Small-Queue \(30000 ms\) is below .*31000 ms/,
    ],
    ['a schedule by cron', rule({ ScheduleExpression: 'cron(0 0 * * ? *)' }), /knows schedules by rate\(…\)/],
    [
      'a target of elsewhere',
      rule({ ScheduleExpression: 'rate(1 minute)', Targets: [{ Arn: 'arn:aws:sqs:us-east-1:000000000000:other' }] }),
      /leads to arn:aws:sqs:us-east-1:000000000000:other/,
    ],
    [
      'an API of another kind',
      { Api: { Type: 'AWS::ApiGatewayV2::Api', Properties: { ProtocolType: 'WEBSOCKET' } } },
      /knows HTTP APIs/,
    ],
  ]
  for (const [what, resources, expected] of cases) {
    test(what, async () => {
      await assert.rejects(rehearse(resources), expected)
    })
  }

  test('and so is a function whose role Lambda may not take', async () => {
    const { OneRole, ...rest } = lambda('One')
    const AssumeRolePolicyDocument = {
      Statement: { Effect: 'Allow', Action: 'sts:AssumeRole', Principal: { Service: 'ec2.amazonaws.com' } },
    }
    const role = { Type: 'AWS::IAM::Role', Properties: { ...OneRole?.Properties, AssumeRolePolicyDocument } }
    await assert.rejects(rehearse({ ...rest, OneRole: role }), /Lambda may not assume the role of Small-One/)
  })
})
