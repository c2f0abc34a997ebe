import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { after, before, suite, test } from 'node:test'
import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge'
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda'
import { ReceiveMessageCommand, SendMessageBatchCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { createActivity } from '../../rehearsal/activity.ts'
import { createEventsApi } from '../../rehearsal/aws/events.ts'
import { createLambdaApi } from '../../rehearsal/aws/lambda.ts'
import { createAwsServer, type Services } from '../../rehearsal/aws/server.ts'
import { createSqsApi } from '../../rehearsal/aws/sqs.ts'
import { createMovableClock } from '../../rehearsal/clock.ts'
import { createBuses } from '../../rehearsal/events/bus.ts'
import { createAccess } from '../../rehearsal/iam/access.ts'
import { createAsynchronous } from '../../rehearsal/lambda/asynchronous.ts'
import { createQueues } from '../../rehearsal/sqs/queues.ts'
import { roleArnOf } from '../../rehearsal/template/account.ts'
import { resolveStack } from '../../rehearsal/template/stack.ts'

/** The clients of the AWS SDK, as functions have them, take what the rehearsal answers for what AWS does. */
suite('the AWS SDK', () => {
  const services: Services = {}
  const notRehearsed: string[] = []
  const aws = createAwsServer(services, (_, what) => notRehearsed.push(what))
  let clients: { sqs: SQSClient; lambda: LambdaClient; events: EventBridgeClient }
  let queues: ReturnType<typeof createQueues>
  let QueueUrl: string

  before(async () => {
    aws.server.listen(0, '127.0.0.1')
    await once(aws.server, 'listening')
    const awsUrl = `http://127.0.0.1:${(aws.server.address() as AddressInfo).port}`
    const resource = (id: string, type: string, properties: Record<string, unknown> = {}) => ({
      id,
      type,
      properties,
      metadata: {},
    })
    const arn = (id: string) => ({ 'Fn::GetAtt': [id, 'Arn'] })
    const grants: [string, unknown][] = [
      ['sqs:SendMessage', arn('Queue')],
      ['events:PutEvents', arn('Bus')],
      ['lambda:InvokeFunction', { 'Fn::Sub': 'arn:aws:lambda:*:*:function:gone' }],
    ]
    const Statement = grants.map(([Action, Resource]) => ({ Effect: 'Allow', Action, Resource }))
    const resources = [
      resource('Queue', 'AWS::SQS::Queue'),
      resource('Closed', 'AWS::SQS::Queue'),
      resource('Bus', 'AWS::Events::EventBus', { Name: 'bus' }),
      resource('Role', 'AWS::IAM::Role', { Policies: [{ PolicyName: 'p', PolicyDocument: { Statement } }] }),
    ]
    const stack = resolveStack({ stackName: 'Small', resources, folder: '' }, { apiUrl: '', awsUrl })
    const access = createAccess(stack)
    const clock = createMovableClock()
    const activity = createActivity(error => assert.fail(String(error)))
    const asynchronous = createAsynchronous({ clock, activity, onGivenUp: () => {} })
    queues = createQueues(stack, clock)
    services.sqs = createSqsApi(queues, access)
    services.lambda = createLambdaApi(new Map(), asynchronous, access)
    services.events = createEventsApi(
      createBuses([], { clock, activity, deliver: () => {}, runsSchedules: false }),
      new Set(['bus']),
      access,
    )
    const credentials = { accessKeyId: 'ASIAONE', secretAccessKey: 'secret', sessionToken: 'token' }
    aws.admit({ ...credentials, caller: { name: 'One', principal: { roleArn: roleArnOf('Small-Role') } } })
    const options = { endpoint: awsUrl, region: 'us-east-1', credentials, maxAttempts: 1 }
    clients = { sqs: new SQSClient(options), lambda: new LambdaClient(options), events: new EventBridgeClient(options) }
    QueueUrl = `${awsUrl}/queues/Small-Queue`
  })
  after(async () => {
    for (const client of Object.values(clients)) client.destroy()
    const closed = once(aws.server, 'close')
    aws.server.close()
    await closed
  })

  const denied = { name: 'AccessDeniedException' }

  test('sends messages, one and several, and finds their hashes right', async () => {
    const sent = await clients.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: 'ä', DelaySeconds: 900 }))
    const Entries = [
      { Id: '1', MessageBody: 'b' },
      { Id: '2', MessageBody: 'c' },
    ]
    const { Successful = [], Failed } = await clients.sqs.send(new SendMessageBatchCommand({ QueueUrl, Entries }))
    const kept = queues.values().next().value?.messages() ?? []
    assert.deepEqual(
      kept.map(({ body }) => body),
      ['ä', 'b', 'c'],
    )
    assert.deepEqual(
      kept.map(({ messageId }) => messageId),
      [sent.MessageId, ...Successful.map(({ MessageId }) => MessageId)],
    )
    assert.deepEqual(Failed, [])
  })

  test('is told what it may not do, by the name of the error', async () => {
    const other = QueueUrl.replace('Small-Queue', 'Small-Closed')
    await assert.rejects(clients.sqs.send(new SendMessageCommand({ QueueUrl: other, MessageBody: 'a' })), {
      ...denied,
      message:
        /^User: arn:aws:sts::000000000000:assumed-role\/Small-Role\/One is not authorized to perform: sqs:SendMessage/,
    })
    await assert.rejects(clients.lambda.send(new InvokeCommand({ FunctionName: 'other' })), denied)
    await assert.rejects(
      clients.events.send(new PutEventsCommand({ Entries: [{ Source: 's', DetailType: 'd', Detail: '{}' }] })),
      denied,
    )
  })

  test('is told that a function is not there, where it may invoke it', async () => {
    await assert.rejects(clients.lambda.send(new InvokeCommand({ FunctionName: 'gone' })), {
      name: 'ResourceNotFoundException',
    })
  })

  test('puts events, and hears which of them were not taken', async () => {
    const entry = { Source: 's', DetailType: 'd', EventBusName: 'bus' }
    const { FailedEntryCount, Entries = [] } = await clients.events.send(
      new PutEventsCommand({
        Entries: [
          { ...entry, Detail: '{"a":1}' },
          { ...entry, Detail: '{' },
        ],
      }),
    )
    assert.equal(FailedEntryCount, 1)
    assert.ok(Entries[0]?.EventId)
    assert.equal(Entries[1]?.ErrorCode, 'MalformedDetail')
  })

  test('is refused what a limit does not allow', async () => {
    const body = 'x'.repeat(256 * 1024 + 1)
    await assert.rejects(
      clients.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: body })),
      /262144 bytes together are accepted/,
    )
    await assert.rejects(
      clients.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: 'a', DelaySeconds: 901 })),
      /0 to 900, not 901/,
    )
  })

  test('is refused what is not rehearsed', async () => {
    await assert.rejects(clients.sqs.send(new ReceiveMessageCommand({ QueueUrl })), {
      name: 'UnknownOperationException',
    })
    assert.deepEqual(notRehearsed, ['sqs:ReceiveMessage'])
  })
})
