import {
  DescribeTableCommand,
  DynamoDBClient,
  ListTablesCommand,
  type TableDescription,
} from '@aws-sdk/client-dynamodb'
import { EventBridgeClient, ListRulesCommand, ListTargetsByRuleCommand } from '@aws-sdk/client-eventbridge'
import {
  type FunctionConfiguration,
  GetPolicyCommand,
  LambdaClient,
  ListFunctionsCommand,
} from '@aws-sdk/client-lambda'
import { account, credentials } from './cdk.ts'

/** Reads back what is in the account. Names are those of the template, without what CloudFormation has put around them. */
export function openAccount(endpoint: string) {
  const options = { endpoint, region: account.region, credentials }
  const dynamodb = new DynamoDBClient(options)
  const lambda = new LambdaClient(options)
  const events = new EventBridgeClient(options)

  /** An API for which no client is installed: AWS Query, answered in XML. */
  async function query(service: string, parameters: Record<string, string>): Promise<string> {
    const scope = `test/20260101/${account.region}/${service}/aws4_request`
    const headers = {
      authorization: `AWS4-HMAC-SHA256 Credential=${scope}, SignedHeaders=host, Signature=0`,
      connection: 'close',
    }
    const answer = await fetch(endpoint, { method: 'POST', headers, body: new URLSearchParams(parameters) })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${parameters.Action}: ${answer.status} ${text}`)
    return text
  }

  return {
    async tables(): Promise<Map<string, TableDescription>> {
      const { TableNames = [] } = await dynamodb.send(new ListTablesCommand({}))
      const described = await Promise.all(
        TableNames.map(TableName => dynamodb.send(new DescribeTableCommand({ TableName }))),
      )
      return new Map(described.map(({ Table = {} }) => [idOf(Table.TableName), Table]))
    },

    async functions(): Promise<Map<string, FunctionConfiguration>> {
      const { Functions = [] } = await lambda.send(new ListFunctionsCommand({}))
      return new Map(Functions.map(each => [idOf(each.FunctionName), each]))
    },

    /** Which services may invoke a function. */
    async invokersOf(functionName: string): Promise<string[]> {
      const { Policy = '{}' } = await lambda.send(new GetPolicyCommand({ FunctionName: functionName }))
      const { Statement = [] }: { Statement?: { Principal: { Service: string } }[] } = JSON.parse(Policy)
      return Statement.map(({ Principal }) => Principal.Service)
    },

    async rules(bus: string) {
      const { Rules = [] } = await events.send(new ListRulesCommand({ EventBusName: bus }))
      return Promise.all(
        Rules.map(async ({ Name, ScheduleExpression, EventPattern }) => {
          const { Targets = [] } = await events.send(new ListTargetsByRuleCommand({ Rule: Name, EventBusName: bus }))
          return { ScheduleExpression, EventPattern, targets: Targets.map(({ Arn }) => idOf(Arn)) }
        }),
      )
    },

    /** What a role may do, by the resource's name. */
    async grantsOf(roleName: string): Promise<Record<string, string[]>> {
      const grants: Record<string, string[]> = {}
      const listed = await query('iam', { Action: 'ListRolePolicies', RoleName: roleName })
      for (const [, PolicyName = ''] of listed.matchAll(/<member>(.*?)<\/member>/g)) {
        const found = await query('iam', { Action: 'GetRolePolicy', RoleName: roleName, PolicyName })
        const [, document = ''] = /<PolicyDocument>([\s\S]*?)</.exec(found) ?? []
        const { Statement }: { Statement: { Action: string | string[]; Resource: string }[] } = JSON.parse(
          decodeURIComponent(document),
        )
        for (const { Action, Resource } of Statement) {
          const name = idOf(Resource)
          grants[name] = [...(grants[name] ?? []), ...[Action].flat()].sort()
        }
      }
      return grants
    },

    async statusOf(stackName: string): Promise<string | undefined> {
      const described = await query('cloudformation', { Action: 'DescribeStacks', StackName: stackName })
      return /<StackStatus>(\w+)</.exec(described)?.[1]
    },

    /** The template that is deployed, as CloudFormation has it. */
    async templateOf(stackName: string): Promise<string> {
      const text = await query('cloudformation', { Action: 'GetTemplate', StackName: stackName })
      return text.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
    },

    close() {
      for (const client of [dynamodb, lambda, events]) client.destroy()
    },
  }
}

/** `Pmq-PmqTablesLog0EFC2A8D-1ABC2DEF3GHI` is the resource `PmqTablesLog0EFC2A8D`; a bus has its name from the template. */
const idOf = (name = '') => name.replace(/^.*[:/](?=Pmq)/, '').replace(/^Pmq-(\w+)-\w+$/, '$1')
