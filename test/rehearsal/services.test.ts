import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { dynoxide } from '../../rehearsal/engine.ts'
import { api, fixtures, lambda, permission, rehearse, type SmallStack } from './small-stack.ts'

const arn = (id: string) => ({ 'Fn::GetAtt': [id, 'Arn'] })
const table = (keys: [string, string][]) => ({
  Type: 'AWS::DynamoDB::Table',
  Properties: {
    KeySchema: keys.map(([AttributeName, KeyType]) => ({ AttributeName, KeyType })),
    AttributeDefinitions: keys.map(([AttributeName]) => ({ AttributeName, AttributeType: 'S' })),
    BillingMode: 'PAY_PER_REQUEST',
  },
})

type Answer = { status: number; text: string }

/** Lets function `One` call a service; answers with the error's name, or `ok`. */
async function call(stack: SmallStack, service: string, request: object): Promise<string> {
  const { answer } = await stack.act('One', { act: 'call', service, ...request })
  const { status, text } = answer as Answer
  return status < 300 ? 'ok' : JSON.parse(text).__type
}

const dynamo = (operation: string, body: object) => ({ target: `DynamoDB_20120810.${operation}`, body })

suite('the rehearsed services', { skip: dynoxide().skip ?? false }, () => {
  test('DynamoDB does what the role allows by action and table, and of a transaction nothing where one item is not allowed', async () => {
    await using stack = await rehearse({
      Table: table([['k', 'HASH']]),
      Other: table([['k', 'HASH']]),
      ...lambda('One', [[['dynamodb:PutItem', 'dynamodb:GetItem'], arn('Table')]]),
      ...api('One'),
    })
    const [TableName, otherName] = ['Small-Table', 'Small-Other']
    const Key = { k: { S: 'a' } }
    assert.equal(await call(stack, 'dynamodb', dynamo('PutItem', { TableName, Item: Key })), 'ok')
    assert.equal(await call(stack, 'dynamodb', dynamo('GetItem', { TableName, Key })), 'ok')
    assert.equal(await call(stack, 'dynamodb', dynamo('DeleteItem', { TableName, Key })), 'AccessDeniedException')
    assert.equal(
      await call(stack, 'dynamodb', dynamo('PutItem', { TableName: otherName, Item: Key })),
      'AccessDeniedException',
    )
    const put = { Put: { TableName, Item: { k: { S: 'b' } } } }
    const check = { ConditionCheck: { TableName, Key, ConditionExpression: 'attribute_exists(k)' } }
    assert.equal(await call(stack, 'dynamodb', dynamo('TransactWriteItems', { TransactItems: [put] })), 'ok')
    const both = dynamo('TransactWriteItems', { TransactItems: [put, check] })
    assert.equal(await call(stack, 'dynamodb', both), 'AccessDeniedException')
    assert.deepEqual(
      stack.report().denied.map(({ action }) => action),
      ['dynamodb:DeleteItem', 'dynamodb:PutItem', 'dynamodb:ConditionCheckItem'],
    )
    assert.deepEqual(stack.report().unused, [])
  })

  test('DynamoDB knows the partition keys of items and queries, which a policy may name', async () => {
    const condition = { 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': ['mine-*'] } }
    const { OneRole, ...function_ } = lambda('One')
    const Statement = [
      { Effect: 'Allow', Action: ['dynamodb:PutItem', 'dynamodb:Query'], Resource: arn('Table'), Condition: condition },
      { Effect: 'Allow', Action: 'logs:*', Resource: '*' },
    ]
    const Properties = { ...OneRole?.Properties, Policies: [{ PolicyName: 'p', PolicyDocument: { Statement } }] }
    await using stack = await rehearse({
      Table: table([['k', 'HASH']]),
      OneRole: { Type: 'AWS::IAM::Role', Properties },
      ...function_,
      ...api('One'),
    })
    const TableName = 'Small-Table'
    const put = (k: string) => call(stack, 'dynamodb', dynamo('PutItem', { TableName, Item: { k: { S: k } } }))
    assert.deepEqual([await put('mine-1'), await put('yours-1')], ['ok', 'AccessDeniedException'])
    const query = (k: string) =>
      call(
        stack,
        'dynamodb',
        dynamo('Query', {
          TableName,
          KeyConditionExpression: '#k = :k',
          ExpressionAttributeNames: { '#k': 'k' },
          ExpressionAttributeValues: { ':k': { S: k } },
        }),
      )
    assert.deepEqual([await query('mine-1'), await query('yours-1')], ['ok', 'AccessDeniedException'])
  })

  test('refuse whatever they do not have, and report it', async () => {
    await using stack = await rehearse({ ...lambda('One', [['*', '*']]), ...api('One') })
    assert.equal(await call(stack, 'dynamodb', dynamo('DeleteTable', { TableName: 't' })), 'UnknownOperationException')
    assert.equal(await call(stack, 'kms', { target: 'TrentService.Decrypt', body: {} }), 'UnknownOperationException')
    assert.deepEqual(
      stack.report().notRehearsed.map(({ what }) => what),
      ['dynamodb:DeleteTable', 'kms:Decrypt'],
    )
  })

  test('know nobody by keys that they have not given out', async () => {
    await using stack = await rehearse({ Table: table([['k', 'HASH']]), ...lambda('One', [['*', '*']]), ...api('One') })
    const request = dynamo('GetItem', { TableName: 'Small-Table', Key: { k: { S: 'a' } } })
    assert.equal(await call(stack, 'dynamodb', { ...request, sessionToken: 'stolen' }), 'UnrecognizedClientException')
  })

  const rule = (Targets: object[], more: object = {}) => ({
    Type: 'AWS::Events::Rule',
    Properties: {
      EventBusName: { Ref: 'Bus' },
      EventPattern: { source: ['s'], detail: { to: ['two'] } },
      Targets,
      ...more,
    },
  })
  const event = (detail: object, EventBusName = 'bus') => ({
    target: 'AWSEvents.PutEvents',
    body: { Entries: [{ Source: 's', DetailType: 'd', Detail: JSON.stringify(detail), EventBusName }] },
  })
  const bus = { Type: 'AWS::Events::EventBus', Properties: { Name: 'bus' } }
  const queue = (Properties: object = {}) => ({ Type: 'AWS::SQS::Queue', Properties })

  test('EventBridge hands an event on by pattern to functions, queues and topics whose policies let it', async () => {
    const allow = (Action: string, Resource: unknown) => ({
      Statement: {
        Effect: 'Allow',
        Principal: { Service: 'events.amazonaws.com' },
        Action,
        Resource,
        Condition: { ArnEquals: { 'aws:SourceArn': arn('Rule') } },
      },
    })
    await using stack = await rehearse({
      Bus: bus,
      Queue: queue(),
      Closed: queue(),
      Dead: queue(),
      Topic: { Type: 'AWS::SNS::Topic' },
      Rule: rule([
        { Id: '1', Arn: arn('Two') },
        { Id: '2', Arn: arn('Queue'), InputPath: '$.detail' },
        {
          Id: '3',
          Arn: { Ref: 'Topic' },
          InputTransformer: { InputPathsMap: { to: '$.detail.to' }, InputTemplate: '"For <to>"' },
        },
        { Id: '4', Arn: arn('Closed'), DeadLetterConfig: { Arn: arn('Dead') } },
      ]),
      QueuePolicy: {
        Type: 'AWS::SQS::QueuePolicy',
        Properties: { Queues: [{ Ref: 'Queue' }], PolicyDocument: allow('sqs:SendMessage', arn('Queue')) },
      },
      DeadPolicy: {
        Type: 'AWS::SQS::QueuePolicy',
        Properties: { Queues: [{ Ref: 'Dead' }], PolicyDocument: allow('sqs:SendMessage', arn('Dead')) },
      },
      TopicPolicy: {
        Type: 'AWS::SNS::TopicPolicy',
        Properties: { Topics: [{ Ref: 'Topic' }], PolicyDocument: allow('sns:Publish', { Ref: 'Topic' }) },
      },
      TwoPermission: permission('Two', 'events.amazonaws.com', arn('Rule')),
      ...lambda('One', [['events:PutEvents', arn('Bus')]]),
      ...lambda('Two'),
      ...api('One'),
    })
    assert.equal(await call(stack, 'events', event({ to: 'nobody' })), 'ok')
    assert.equal(await call(stack, 'events', event({ to: 'two' })), 'ok')
    await stack.settled()
    assert.equal(stack.coldStarts(), 2)
    assert.equal(stack.queueLength('Queue'), 1)
    assert.equal(stack.queueLength('Dead'), 1)
    assert.deepEqual([...stack.published().values()], [['"For two"']])
    const { denied, unused } = stack.report()
    assert.deepEqual(
      denied.map(({ caller, action }) => `${caller}: ${action}`),
      ['EventBridge for Rule: sqs:SendMessage'],
    )
    assert.deepEqual(unused, [])
  })

  test('EventBridge takes events for the buses that a role may speak on', async () => {
    await using stack = await rehearse({
      Bus: bus,
      ...lambda('One', [['events:PutEvents', arn('Bus')]]),
      ...api('One'),
    })
    assert.equal(await call(stack, 'events', event({}, 'default')), 'AccessDeniedException')
  })

  test('a schedule comes due with the clock, as often as the template says', async () => {
    await using stack = await rehearse(
      {
        Rule: {
          Type: 'AWS::Events::Rule',
          Properties: { ScheduleExpression: 'rate(5 minutes)', Targets: [{ Arn: arn('Two') }] },
        },
        TwoPermission: permission('Two', 'events.amazonaws.com', arn('Rule')),
        ...lambda('Two'),
      },
      { runsSchedules: true },
    )
    stack.advance(4 * 60_000)
    await turn()
    await stack.settled()
    assert.equal(stack.coldStarts(), 0)
    stack.advance(60_000)
    await turn()
    await stack.settled()
    assert.equal(stack.coldStarts(), 1)
  })

  const send = (body: string, more: object = {}) => ({
    target: 'AmazonSQS.SendMessage',
    body: { QueueUrl: 'http://127.0.0.1/queues/Small-Queue', MessageBody: body, ...more },
  })
  const mapping = (Properties: object = {}) => ({
    Type: 'AWS::Lambda::EventSourceMapping',
    Properties: {
      EventSourceArn: arn('Queue'),
      FunctionName: { Ref: 'Two' },
      FunctionResponseTypes: ['ReportBatchItemFailures'],
      ...Properties,
    },
  })
  const polled = [['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes'], arn('Queue')] as [
    string[],
    unknown,
  ]

  test('a message of a queue is handed to its function when its delay is over, and again until it is dead', async () => {
    await using stack = await rehearse({
      Dead: queue(),
      Queue: queue({
        VisibilityTimeout: 60,
        RedrivePolicy: { deadLetterTargetArn: arn('Dead'), maxReceiveCount: 2 },
      }),
      Mapping: mapping(),
      ...lambda('One', [['sqs:SendMessage', arn('Queue')]]),
      ...lambda('Two', [polled]),
      ...api('One'),
    })
    assert.equal(await call(stack, 'sqs', send('good', { DelaySeconds: 10 })), 'ok')
    assert.equal(await call(stack, 'sqs', send('fail', { DelaySeconds: 10 })), 'ok')
    await pass(stack)
    assert.equal(stack.queueLength('Queue'), 2)
    stack.advance(10_000)
    await pass(stack)
    assert.equal(stack.queueLength('Queue'), 1, 'what was handled is deleted, what was not waits')
    for (let receives = 2; receives <= 3; receives++) {
      stack.advance(60_000)
      await pass(stack)
    }
    assert.deepEqual([stack.queueLength('Queue'), stack.queueLength('Dead')], [0, 1])
    assert.deepEqual(stack.report().denied, [])
    assert.deepEqual(stack.report().unused, [])
  })

  test('a batch that its function fails with as a whole is handed out again as a whole', async () => {
    await using stack = await rehearse({
      Queue: queue({ VisibilityTimeout: 60 }),
      Mapping: mapping(),
      ...lambda('One', [['sqs:SendMessage', arn('Queue')]]),
      ...lambda('Two', [polled]),
      ...api('One'),
    })
    const Entries = ['good', 'fail all'].map((MessageBody, i) => ({ Id: `${i}`, MessageBody }))
    const request = { target: 'AmazonSQS.SendMessageBatch', body: { QueueUrl: '/Small-Queue', Entries } }
    assert.equal(await call(stack, 'sqs', request), 'ok')
    await pass(stack)
    assert.ok(stack.queueLength('Queue') > 0)
    assert.ok(stack.report().failed.some(({ what }) => what === 'Error: all of it'))
  })

  test('a function that its role does not let receive is given no messages', async () => {
    await using stack = await rehearse({
      Queue: queue({ VisibilityTimeout: 60 }),
      Mapping: mapping(),
      ...lambda('One', [['sqs:SendMessage', arn('Queue')]]),
      ...lambda('Two'),
      ...api('One'),
    })
    await call(stack, 'sqs', send('good'))
    await pass(stack)
    assert.equal(stack.queueLength('Queue'), 1)
    assert.deepEqual(
      stack.report().denied.map(({ action }) => action),
      ['sqs:ReceiveMessage'],
    )
  })

  test('an asynchronous invocation is tried again after a minute and after two, and then given to its queue', async () => {
    await using stack = await rehearse({
      Dead: queue(),
      Config: {
        Type: 'AWS::Lambda::EventInvokeConfig',
        Properties: {
          FunctionName: { Ref: 'Two' },
          Qualifier: '$LATEST',
          DestinationConfig: { OnFailure: { Destination: arn('Dead') } },
        },
      },
      ...lambda('One', [['lambda:InvokeFunction', arn('Two')]]),
      ...lambda('Two', [['sqs:SendMessage', arn('Dead')]]),
      ...api('One'),
    })
    const path = '/2015-03-31/functions/Small-Two/invocations'
    const invoke = { path, headers: { 'x-amz-invocation-type': 'Event' }, body: { act: 'fail' } }
    assert.equal(await call(stack, 'lambda', invoke), 'ok')
    const failures = () => stack.report().failed[0]?.times
    await stack.settled()
    assert.equal(failures(), 1)
    for (const [minutes, expected] of [
      [1, 2],
      [1, 2],
      [1, 3],
    ] as const) {
      stack.advance(minutes * 60_000)
      await pass(stack)
      assert.equal(failures(), expected)
    }
    assert.equal(stack.queueLength('Dead'), 1)
    assert.deepEqual(stack.report().unused, [])
  })

  test('a function invokes one that is in the account and not in the template', async () => {
    await using stack = await rehearse(
      {
        // It waits until the other one has started.
        ...lambda('One', [['lambda:InvokeFunction', 'arn:aws:lambda:*:*:function:elsewhere']], { Timeout: 10 }),
        ...api('One'),
      },
      { neighbours: [{ name: 'elsewhere', folder: fixtures, handler: 'index.handler' }] },
    )
    const path = '/2015-03-31/functions/elsewhere/invocations'
    assert.equal(await call(stack, 'lambda', { path, body: { act: 'count' } }), 'ok')
  })

  test('a function invokes others that its role lets it, by the limits of the way in which it does', async () => {
    await using stack = await rehearse({
      ...lambda('One', [['lambda:InvokeFunction', arn('Two')]], { Timeout: 5 }),
      ...lambda('Two'),
      ...lambda('Three'),
      ...api('One'),
    })
    const invoke = async (name: string, body: object, type = 'RequestResponse') => {
      const path = `/2015-03-31/functions/${name}/invocations`
      const request = { act: 'call', service: 'lambda', path, headers: { 'x-amz-invocation-type': type }, body }
      const { answer } = await stack.act('One', request)
      const { status, text } = answer as Answer
      return [status, text === '' ? '' : JSON.parse(text)]
    }
    assert.deepEqual(await invoke('Small-Two', { act: 'count' }), [200, 1])
    const [status, failure] = await invoke('Small-Two', { act: 'fail' })
    assert.deepEqual([status, failure.errorType], [200, 'TypeError'])
    assert.equal((await invoke('Small-Three', {}))[0], 403)
    const large = { act: 'count', padding: 'x'.repeat(300 * 1024) }
    assert.equal((await invoke('Small-Two', large, 'Event'))[0], 413)
    assert.equal((await invoke('Small-Two', large))[0], 200)
  })
})

/** Lets run what the clock has woken. */
const turn = () => new Promise(setImmediate)

/** Until nothing is under way: what was woken may begin something else. */
async function pass(stack: SmallStack): Promise<void> {
  for (let i = 0; i < 3; i++) {
    await turn()
    await stack.settled()
  }
}
