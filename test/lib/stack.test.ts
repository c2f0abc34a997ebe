import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { Match } from 'aws-cdk-lib/assertions'
import { type Endpoint, endpoints } from '../../core/protocol/endpoints.ts'
import { envNames, metricNames } from '../../functions/edge/env.ts'
import type { PmqProps } from '../../lib/pmq.ts'
import { parseTransform } from '../../rehearsal/events/transform.ts'
import { statementsOf } from './statements.ts'
import { synthesize } from './synthesize.ts'

const template = synthesize()
// A table under another logical id is another table: an empty one. Whoever must change these has data to move.
const logTable = 'PmqTablesLog0EFC2A8D'
const registryTable = 'PmqTablesRegistry1B69A6A2'
const bus = 'PmqBus3D7A5F88'
const jobs =
  Object.keys(template.findResources('AWS::SQS::Queue')).find(id => /^PmqNotifyJobs[0-9A-F]{8}/.test(id)) ?? ''

const functionIds = Object.fromEntries(
  ['Publish', 'Consume', 'Admin', 'Tick', 'Notify'].map(name => {
    const ids = Object.keys(template.findResources('AWS::Lambda::Function'))
    return [name.toLowerCase(), ids.find(id => id.startsWith(`Pmq${name}Function`)) ?? `no function ${name}`]
  }),
)

const environmentOf = (name: string, of = template) =>
  of.findResources('AWS::Lambda::Function')[functionIds[name] ?? '']?.Properties.Environment.Variables

suite('tables', () => {
  const tables = template.findResources('AWS::DynamoDB::Table')

  test('keep their logical ids, since another one means an empty table', () => {
    assert.deepEqual(Object.keys(tables).sort(), [logTable, registryTable])
  })

  for (const id of [logTable, registryTable]) {
    test(`${id} survives its stack, is protected from deletion and can be restored to any second`, () => {
      const table = tables[id]
      assert.equal(table?.DeletionPolicy, 'Retain')
      assert.equal(table?.UpdateReplacePolicy, 'Retain')
      assert.equal(table?.Properties.DeletionProtectionEnabled, true)
      assert.deepEqual(table?.Properties.PointInTimeRecoverySpecification, { PointInTimeRecoveryEnabled: true })
    })

    test(`${id} is paid by request and has a generated name`, () => {
      assert.equal(tables[id]?.Properties.BillingMode, 'PAY_PER_REQUEST')
      assert.equal(tables[id]?.Properties.TableName, undefined)
    })
  }

  test('the log is keyed by queue and offset, and expires batches by x', () => {
    template.hasResourceProperties('AWS::DynamoDB::Table', {
      KeySchema: [
        { AttributeName: 'q', KeyType: 'HASH' },
        { AttributeName: 'o', KeyType: 'RANGE' },
      ],
      AttributeDefinitions: Match.arrayWith([
        { AttributeName: 'q', AttributeType: 'N' },
        { AttributeName: 'o', AttributeType: 'N' },
      ]),
      TimeToLiveSpecification: { AttributeName: 'x', Enabled: true },
    })
  })

  test('the registry is keyed by pk and sk, and what is kept for a time expires by x', () => {
    assert.deepEqual(tables[registryTable]?.Properties.KeySchema, [
      { AttributeName: 'pk', KeyType: 'HASH' },
      { AttributeName: 'sk', KeyType: 'RANGE' },
    ])
    assert.deepEqual(tables[registryTable]?.Properties.TimeToLiveSpecification, { AttributeName: 'x', Enabled: true })
  })
})

suite('alarms', () => {
  test('call an operator over SNS, at the beginning and at the end, and name their paragraph', () => {
    const [topicId] = Object.keys(template.findResources('AWS::SNS::Topic'))
    const alarms = Object.values(template.findResources('AWS::CloudWatch::Alarm'))
    assert.ok(alarms.length > 0)
    const operations = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')
    for (const { Properties } of alarms) {
      assert.deepEqual(Properties.AlarmActions, [{ Ref: topicId }])
      assert.deepEqual(Properties.OKActions, [{ Ref: topicId }])
      const paragraph = /docs\/operations\.md, "(.+)"/.exec(Properties.AlarmDescription)?.[1]
      assert.ok(operations.includes(`### ${paragraph}\n`), Properties.AlarmDescription)
    }
  })

  test('are also what the service tells itself, as a sentence', () => {
    template.hasResourceProperties('AWS::Events::Rule', {
      EventBusName: { Ref: bus },
      EventPattern: { source: ['pmq'], 'detail-type': ['AlarmRaised', 'AlarmCleared'] },
      Targets: [
        Match.objectLike({
          Arn: { Ref: Object.keys(template.findResources('AWS::SNS::Topic'))[0] },
          InputTransformer: Match.objectLike({
            InputPathsMap: { 'detail-type': '$.detail-type', 'detail-text': '$.detail.text' },
          }),
        }),
      ],
    })
    const rules = Object.entries(template.findResources('AWS::Events::Rule'))
    const [id = '', rule] = rules.find(([name]) => name.startsWith('PmqAlarmsTold')) ?? []
    const tell = parseTransform(rule?.Properties.Targets[0], id)
    const text = 'Group billing is behind in topic orders: 7 messages wait, the oldest for 3 s'
    assert.equal(
      JSON.parse(tell({ 'detail-type': 'AlarmRaised', detail: { text } })),
      `AlarmRaised: ${text}. docs/operations.md, "Alarms that the service tells".`,
    )
  })

  test('look at each function, each table and the queue of jobs that failed, and at a tick that does not run, or not get done', () => {
    const alarms = Object.keys(template.findResources('AWS::CloudWatch::Alarm')).map(
      id => /^PmqAlarms(.*?)[0-9A-F]{8}$/.exec(id)?.[1],
    )
    const names = ['Publish', 'Consume', 'Admin', 'Tick', 'Notify']
    const expected = [
      ...names.flatMap(name => [`${name}Errors`, `${name}Throttles`]),
      ...['Log', 'Registry'].flatMap(name => [`${name}TableThrottles`, `${name}TableErrors`]),
      ...['DeadJobs', 'DeadLetters', 'TickLate', 'TickNotRunning', 'UnhandledTopics'],
    ]
    assert.deepEqual(alarms.sort(), expected.sort())
    template.hasResourceProperties('AWS::CloudWatch::Alarm', {
      MetricName: 'Invocations',
      Dimensions: [{ Name: 'FunctionName', Value: { Ref: functionIds.tick } }],
      ComparisonOperator: 'LessThanThreshold',
      Threshold: 1,
      TreatMissingData: 'breaching',
    })
  })

  test('look at metrics that the functions write, of their own stack, and take none for well', () => {
    for (const MetricName of [metricNames.unhandledTopics, metricNames.deadLetters, metricNames.leftByTick]) {
      template.hasResourceProperties('AWS::CloudWatch::Alarm', {
        Namespace: metricNames.namespace,
        MetricName,
        Dimensions: [{ Name: 'service', Value: 'Pmq' }],
        TreatMissingData: 'notBreaching',
      })
    }
  })
})

suite('functions', () => {
  test('run Node 24 on arm64, as CommonJS with one handler', () => {
    for (const [id, lambda] of Object.entries(template.findResources('AWS::Lambda::Function'))) {
      assert.equal(lambda.Properties.Runtime, 'nodejs24.x', id)
      assert.deepEqual(lambda.Properties.Architectures, ['arm64'], id)
      assert.equal(lambda.Properties.Handler, 'index.handler', id)
    }
    assert.equal(Object.keys(template.findResources('AWS::Lambda::Function')).length, 5)
  })

  const dynamodb = (...actions: string[]) => actions.map(action => `dynamodb:${action}`)
  const anyItem = dynamodb(
    'BatchGetItem',
    'ConditionCheckItem',
    'DeleteItem',
    'GetItem',
    'PutItem',
    'Query',
    'UpdateItem',
  )
  const putEvents = ['events:PutEvents']
  const mayDo = {
    publish: {
      [logTable]: dynamodb('PutItem', 'Query'),
      [registryTable]: dynamodb('Query', 'UpdateItem of FAILED#*'),
      [bus]: putEvents,
    },
    consume: { [logTable]: dynamodb('Query'), [registryTable]: anyItem, [bus]: putEvents },
    admin: {
      [logTable]: dynamodb('PutItem', 'Query'),
      [registryTable]: anyItem.filter(action => action !== 'dynamodb:GetItem'),
      [bus]: putEvents,
    },
    tick: { [logTable]: dynamodb('Query'), [registryTable]: anyItem, [bus]: putEvents },
    notify: {
      [logTable]: dynamodb('PutItem', 'Query'),
      [registryTable]: dynamodb('GetItem', 'PutItem', 'Query', 'UpdateItem'),
      [bus]: putEvents,
      [jobs]: ['sqs:DeleteMessage', 'sqs:GetQueueAttributes', 'sqs:ReceiveMessage', 'sqs:SendMessage'],
    },
  }
  for (const [name, expected] of Object.entries(mayDo)) {
    test(`${name} may do what it needs and nothing else`, () => {
      const { logGroup, statements } = statementsOf(template, functionIds[name] ?? '')
      assert.deepEqual(statements, { ...expected, [logGroup]: ['logs:CreateLogStream', 'logs:PutLogEvents'] })
    })
  }

  test('log to groups that forget', () => {
    const groups = Object.values(template.findResources('AWS::Logs::LogGroup'))
    assert.equal(groups.length, 5)
    for (const group of groups) assert.equal(group.Properties.RetentionInDays, 30)
  })

  test('are told their tables, and the bus only where they may speak on it', () => {
    const tables = { [envNames.logTable]: { Ref: logTable }, [envNames.registryTable]: { Ref: registryTable } }
    const busToo = { ...tables, [envNames.bus]: { Ref: bus } }
    const expected = {
      consume: busToo,
      admin: busToo,
      tick: { ...busToo, [envNames.serviceName]: 'Pmq' },
      publish: { ...busToo, [envNames.serviceName]: 'Pmq' },
      notify: { ...busToo, [envNames.jobQueue]: { Ref: jobs } },
    }
    for (const [name, variables] of Object.entries(expected)) assert.deepEqual(environmentOf(name), variables, name)
  })

  test('that answer consumers are told the time zone and the length of a long poll, where the stack says so', () => {
    const variables = environmentOf('consume', synthesize({ timeZone: 'Asia/Shanghai', pollHoldMs: 0 }))
    assert.equal(variables[envNames.timeZone], 'Asia/Shanghai')
    assert.equal(variables[envNames.pollHoldMs], '0')
  })

  test('that answer consumers are told that there are sub-environments, where the stack says so', () => {
    const told = (props?: PmqProps) =>
      Object.keys(functionIds).filter(name => envNames.subEnvironments in environmentOf(name, synthesize(props)))
    assert.deepEqual(told({ subEnvironments: true }), ['consume'])
    assert.deepEqual(told({ subEnvironments: false }), [])
    const variables = environmentOf('consume', synthesize({ subEnvironments: true }))
    assert.equal(variables[envNames.subEnvironments], '1')
  })

  test('refuse a long poll that API Gateway would cut', () => {
    assert.throws(() => synthesize({ pollHoldMs: 30_000 }), /pollHoldMs \(30000\) must be 0 to 20000/)
  })
})

suite('API', () => {
  const routes = Object.values(template.findResources('AWS::ApiGatewayV2::Route')).map(route => route.Properties)
  const integrations = template.findResources('AWS::ApiGatewayV2::Integration')

  test('has a route to the right function for each endpoint, and no other', () => {
    const actual = routes.map(({ RouteKey, Target }) => {
      const integrationId: string = Target['Fn::Join'][1].at(-1).Ref
      return `${RouteKey} → ${integrations[integrationId]?.Properties.IntegrationUri['Fn::GetAtt'][0]}`
    })
    const expected = Object.values<Endpoint>(endpoints).map(
      endpoint => `${endpoint.method} ${endpoint.path} → ${functionIds[endpoint.function]}`,
    )
    assert.deepEqual(actual.sort(), expected.sort())
  })

  test('is closed: every route asks for an IAM signature', () => {
    for (const route of routes) assert.equal(route.AuthorizationType, 'AWS_IAM', route.RouteKey)
  })

  test('passes requests on in payload format 2.0', () => {
    for (const { Properties } of Object.values(integrations)) assert.equal(Properties.PayloadFormatVersion, '2.0')
  })

  test('has its URL among the outputs of the stack', () => {
    template.hasOutput('ApiUrl', { Value: { 'Fn::GetAtt': [Match.stringLikeRegexp('HttpApi'), 'ApiEndpoint'] } })
  })
})

suite('notify', () => {
  const calls = (detailTypes: string[], arn: object) =>
    template.hasResourceProperties('AWS::Events::Rule', {
      EventBusName: { Ref: bus },
      EventPattern: { source: ['pmq'], 'detail-type': detailTypes },
      State: 'ENABLED',
      Targets: [Match.objectLike({ Arn: arn })],
    })

  test('hears at once that queues have got messages, and a second later that they were busy', () => {
    calls(['QueueAppended', 'TargetTest'], { 'Fn::GetAtt': [functionIds.notify, 'Arn'] })
    calls(['QueueBusy', 'AlarmRaised', 'AlarmCleared'], { 'Fn::GetAtt': [jobs, 'Arn'] })
    assert.equal(template.findResources('AWS::SQS::Queue')[jobs]?.Properties.DelaySeconds, 1)
  })

  test("has its jobs from a queue that keeps what fails, and is nobody else's while it is being done", () => {
    const { Properties } = template.findResources('AWS::SQS::Queue')[jobs] ?? {}
    assert.equal(Properties.RedrivePolicy.maxReceiveCount, 5)
    const { Timeout } = template.findResources('AWS::Lambda::Function')[functionIds.notify ?? '']?.Properties ?? {}
    assert.ok(Properties.VisibilityTimeout > Timeout)
    template.hasResourceProperties('AWS::Lambda::EventSourceMapping', {
      EventSourceArn: { 'Fn::GetAtt': [jobs, 'Arn'] },
      FunctionResponseTypes: ['ReportBatchItemFailures'],
    })
  })

  test('may invoke the functions that the operator has named, and both it and the API know them', () => {
    const bill = 'arn:aws:lambda:us-east-1:123456789012:function:bill'
    const named = synthesize({ lambdaConsumers: [bill], callbackNetworks: ['10.1.0.0/16'], webhookPorts: [443, 9443] })
    named.hasResourceProperties('AWS::IAM::Policy', {
      PolicyDocument: {
        Statement: Match.arrayWith([
          Match.objectLike({ Effect: 'Allow', Action: 'lambda:InvokeFunction', Resource: bill }),
        ]),
      },
    })
    for (const name of ['notify', 'admin']) {
      assert.partialDeepStrictEqual(environmentOf(name, named), {
        [envNames.lambdaConsumers]: bill,
        [envNames.callbackNetworks]: '10.1.0.0/16',
        [envNames.webhookPorts]: '443,9443',
      })
    }
  })
})

suite('upkeep', () => {
  const targets = [Match.objectLike({ Arn: { 'Fn::GetAtt': [functionIds.tick, 'Arn'] } })]

  test('calls the tick every minute', () => {
    template.hasResourceProperties('AWS::Events::Rule', {
      ScheduleExpression: 'rate(1 minute)',
      State: 'ENABLED',
      Targets: targets,
    })
  })

  test('calls the tick when a group has changed', () => {
    template.hasResourceProperties('AWS::Events::Rule', {
      EventBusName: { Ref: bus },
      EventPattern: { source: ['pmq'], 'detail-type': ['GroupChanged'] },
      State: 'ENABLED',
      Targets: targets,
    })
  })

  test('lets EventBridge call the tick and the notify function, and API Gateway the three others', () => {
    const callers = Object.values(template.findResources('AWS::Lambda::Permission')).map(
      ({ Properties }) => `${Properties.Principal} ${Properties.FunctionName['Fn::GetAtt'][0]}`,
    )
    assert.deepEqual(callers.sort(), [
      `apigateway.amazonaws.com ${functionIds.admin}`,
      `apigateway.amazonaws.com ${functionIds.consume}`,
      `apigateway.amazonaws.com ${functionIds.publish}`,
      `events.amazonaws.com ${functionIds.notify}`,
      `events.amazonaws.com ${functionIds.tick}`,
      `events.amazonaws.com ${functionIds.tick}`,
    ])
  })
})
