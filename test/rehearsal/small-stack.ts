import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Rehearsal, type RehearsalOptions, startRehearsal } from '../../rehearsal/rehearsal.ts'

type Resources = Record<string, { Type: string; Properties?: object; Metadata?: object }>

/** The folder of the function that does what it is told. */
export const fixtures = fileURLToPath(new URL('../fixtures/rehearsal/', import.meta.url))
const arn = (id: string) => ({ 'Fn::GetAtt': [id, 'Arn'] })
const trust = {
  Statement: { Effect: 'Allow', Action: 'sts:AssumeRole', Principal: { Service: 'lambda.amazonaws.com' } },
}

/** A function of the fixture, with a role of its own that may do this and write its log. */
export function lambda(
  id: string,
  allow: [action: string | string[], resource: unknown][] = [],
  more: object = {},
): Resources {
  const logs = [['logs:CreateLogStream', 'logs:PutLogEvents'], arn(`${id}Logs`)] as const
  const Statement = [logs, ...allow].map(([Action, Resource]) => ({ Effect: 'Allow', Action, Resource }))
  return {
    [`${id}Logs`]: { Type: 'AWS::Logs::LogGroup' },
    [`${id}Role`]: {
      Type: 'AWS::IAM::Role',
      Properties: { AssumeRolePolicyDocument: trust, Policies: [{ PolicyName: 'p', PolicyDocument: { Statement } }] },
    },
    [id]: {
      Type: 'AWS::Lambda::Function',
      Properties: {
        Handler: 'index.handler',
        Runtime: 'nodejs24.x',
        Role: arn(`${id}Role`),
        Timeout: 1,
        LoggingConfig: { LogGroup: { Ref: `${id}Logs` } },
        ...more,
      },
      Metadata: { 'aws:asset:path': 'asset' },
    },
  }
}

/** An HTTP API with `POST /{id}` for each of these functions, which it may invoke. */
export function api(...functionIds: string[]): Resources {
  const sourceArn = {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is CloudFormation that fills it.
    'Fn::Sub': 'arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${Api}/*/*/*',
  }
  return Object.assign(
    { Api: { Type: 'AWS::ApiGatewayV2::Api', Properties: { Name: 'api', ProtocolType: 'HTTP' } } },
    ...functionIds.map(id => ({
      [`${id}Integration`]: {
        Type: 'AWS::ApiGatewayV2::Integration',
        Properties: { IntegrationType: 'AWS_PROXY', IntegrationUri: arn(id), PayloadFormatVersion: '2.0' },
      },
      [`${id}Route`]: {
        Type: 'AWS::ApiGatewayV2::Route',
        Properties: {
          ApiId: { Ref: 'Api' },
          RouteKey: `POST /${id}`,
          Target: { 'Fn::Join': ['/', ['integrations', { Ref: `${id}Integration` }]] },
        },
      },
      [`${id}Permission`]: permission(id, 'apigateway.amazonaws.com', sourceArn),
    })),
  )
}

/** Lets a service invoke a function, for one source. */
export const permission = (functionId: string, Principal: string, SourceArn: unknown) => ({
  Type: 'AWS::Lambda::Permission',
  Properties: { Action: 'lambda:InvokeFunction', FunctionName: arn(functionId), Principal, SourceArn },
})

export type SmallStack = Rehearsal & {
  /** Lets a function of the API do something; answers with its status and what it says. */
  act(functionId: string, act: object): Promise<{ status: number; answer: unknown }>
  [Symbol.asyncDispose](): Promise<void>
}

/** Rehearses a template of these resources alone. */
export async function rehearse(resources: Resources, options: RehearsalOptions = {}): Promise<SmallStack> {
  const folder = await mkdtemp(join(tmpdir(), 'pmq-small-'))
  await mkdir(join(folder, 'asset'))
  await cp(fixtures, join(folder, 'asset'), { recursive: true })
  const template = join(folder, 'Small.template.json')
  await writeFile(template, JSON.stringify({ Resources: resources }))
  try {
    const rehearsal = await startRehearsal(template, { runsSchedules: false, ...options })
    return {
      ...rehearsal,
      async act(functionId, act) {
        const headers = { connection: 'close' }
        const answer = await fetch(`${rehearsal.url}/${functionId}`, {
          method: 'POST',
          body: JSON.stringify(act),
          headers,
        })
        const text = await answer.text()
        return { status: answer.status, answer: JSON.parse(text || 'null') }
      },
      [Symbol.asyncDispose]: rehearsal.stop,
    }
  } finally {
    await rm(folder, { recursive: true })
  }
}
