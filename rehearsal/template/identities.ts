import { arnOf, roleArnOf } from './account.ts'
import type { Resource } from './assembly.ts'
import { asText } from './read.ts'

/** What `Ref` and `Fn::GetAtt` give for a resource. */
export type Identity = { ref: string; attributes: Record<string, string> }

export type Addresses = {
  /** Of the HTTP API. */
  apiUrl: string
  /** Of what stands for the AWS services: the URL of a queue begins with it, and the AWS SDK goes where that says. */
  awsUrl: string
}

type Identify = (name: string, resource: Resource, addresses: Addresses, busOf: (rule: Resource) => string) => Identity

const plain: Identify = name => ({ ref: name, attributes: {} })

/** Every type that the rehearsal knows; a template with another one is refused. */
const types: Record<string, Identify> = {
  'AWS::DynamoDB::Table': name => ({ ref: name, attributes: { Arn: arnOf('dynamodb', `table/${name}`) } }),
  'AWS::Events::EventBus': name => ({
    ref: name,
    attributes: { Arn: arnOf('events', `event-bus/${name}`), Name: name },
  }),
  'AWS::Events::Rule': (name, resource, _, busOf) => {
    const bus = busOf(resource)
    const path = bus === defaultBus ? name : `${bus}/${name}`
    return { ref: path.replace('/', '|'), attributes: { Arn: arnOf('events', `rule/${path}`) } }
  },
  'AWS::IAM::Role': name => ({ ref: name, attributes: { Arn: roleArnOf(name) } }),
  'AWS::IAM::Policy': plain,
  'AWS::IAM::ManagedPolicy': name => ({ ref: arnOf('iam', `policy/${name}`), attributes: {} }),
  'AWS::Lambda::Function': name => ({ ref: name, attributes: { Arn: arnOf('lambda', `function:${name}`) } }),
  'AWS::Lambda::EventInvokeConfig': plain,
  'AWS::Lambda::EventSourceMapping': plain,
  'AWS::Lambda::Permission': plain,
  'AWS::Logs::LogGroup': name => ({ ref: name, attributes: { Arn: arnOf('logs', `log-group:${name}:*`) } }),
  'AWS::SNS::Topic': name => ({
    ref: arnOf('sns', name),
    attributes: { TopicArn: arnOf('sns', name), TopicName: name },
  }),
  'AWS::SNS::TopicPolicy': plain,
  'AWS::SQS::Queue': (name, _, { awsUrl }) => ({
    ref: `${awsUrl}/queues/${name}`,
    attributes: { Arn: arnOf('sqs', name), QueueName: name, QueueUrl: `${awsUrl}/queues/${name}` },
  }),
  'AWS::SQS::QueuePolicy': plain,
  'AWS::CloudWatch::Alarm': name => ({ ref: name, attributes: { Arn: arnOf('cloudwatch', `alarm:${name}`) } }),
  'AWS::CloudWatch::Dashboard': plain,
  'AWS::ApiGatewayV2::Api': (name, _, { apiUrl }) => ({ ref: name, attributes: { ApiEndpoint: apiUrl, ApiId: name } }),
  'AWS::ApiGatewayV2::Integration': plain,
  'AWS::ApiGatewayV2::Route': plain,
  'AWS::ApiGatewayV2::Stage': plain,
  'AWS::CDK::Metadata': plain,
}

/** Where a name is the template's to give, and long names would not be taken. */
const nameProperties = ['TableName', 'Name', 'RoleName', 'FunctionName', 'LogGroupName', 'TopicName', 'QueueName']
const named = new Set([
  'AWS::DynamoDB::Table',
  'AWS::Events::EventBus',
  'AWS::Events::Rule',
  'AWS::IAM::Role',
  'AWS::Lambda::Function',
  'AWS::Logs::LogGroup',
  'AWS::SNS::Topic',
  'AWS::SQS::Queue',
])

export const defaultBus = 'default'

export function identify(
  stackName: string,
  resource: Resource,
  addresses: Addresses,
  busOf: (rule: Resource) => string,
): Identity {
  const known = types[resource.type]
  if (!known) {
    throw new Error(
      `the rehearsal does not know ${resource.type} (${resource.id}); it knows ${Object.keys(types).join(', ')}`,
    )
  }
  const given = named.has(resource.type) ? nameProperties.find(name => name in resource.properties) : undefined
  const name = given ? asText(resource.properties[given], `${resource.id}.${given}`) : `${stackName}-${resource.id}`
  return known(name, resource, addresses, busOf)
}
