import { Agent, request } from 'node:http'
import type { Access } from '../iam/access.ts'
import type { Context } from '../iam/conditions.ts'
import { arnOf } from '../template/account.ts'
import { type AwsAnswer, type AwsCall, accessDenied, notRehearsed } from './call.ts'
import { actionsOf, type TableAction } from './dynamodb-actions.ts'

export type DynamoDb = { serve(call: AwsCall): Promise<AwsAnswer>; close(): void }

/** Of items alone: whatever makes, changes or lists tables is no business of a function. */
const known = new Set([
  'BatchGetItem',
  'BatchWriteItem',
  'DeleteItem',
  'GetItem',
  'PutItem',
  'Query',
  'Scan',
  'TransactGetItems',
  'TransactWriteItems',
  'UpdateItem',
])

/** DynamoDB in front of an engine: asks for permission by action and table, and hands the request on as it is. */
export function createDynamoDb(
  endpoint: string,
  /** Table → its partition key. */
  partitionKeys: ReadonlyMap<string, string>,
  access: Access,
): DynamoDb {
  const agent = new Agent({ keepAlive: true })

  function contextOf(action: TableAction, input: QueryInput): Context {
    const name = partitionKeys.get(action.table) ?? ''
    const leading =
      action.action === 'dynamodb:Query' ? [queriedKey(input, name)] : action.keys.map(key => keyText(key[name]))
    return leading.length > 0 ? { 'dynamodb:leadingkeys': leading } : {}
  }

  return {
    async serve(call) {
      if (!known.has(call.operation)) return notRehearsed(`dynamodb:${call.operation}`)
      const input: QueryInput = JSON.parse(call.body.toString())
      for (const action of actionsOf(call.operation, input)) {
        const resource = arnOf('dynamodb', `table/${action.table}${action.index ? `/index/${action.index}` : ''}`)
        const { refusal } = access.ask(call.caller, action.action, resource, contextOf(action, input))
        if (refusal) return accessDenied(refusal)
      }
      return forward(endpoint, agent, call)
    },
    close: () => agent.destroy(),
  }
}

type QueryInput = {
  KeyConditionExpression?: string
  ExpressionAttributeNames?: Record<string, string>
  ExpressionAttributeValues?: Record<string, unknown>
}

/** The partition key that a query is about: its condition names it as equal to a value. */
function queriedKey(input: QueryInput, partitionKey: string): string {
  const { KeyConditionExpression = '', ExpressionAttributeNames = {}, ExpressionAttributeValues = {} } = input
  for (const [, name = '', value = ''] of KeyConditionExpression.matchAll(/([#\w]+)\s*=\s*(:\w+)/g)) {
    if ((ExpressionAttributeNames[name] ?? name) === partitionKey) return keyText(ExpressionAttributeValues[value])
  }
  throw new Error(`the rehearsal does not find the partition key in "${KeyConditionExpression}"`)
}

/** The text of a key's value, `{ S: … }`, `{ N: … }` or `{ B: … }`. */
const keyText = (value: unknown) => String(Object.values(value ?? {})[0])

function forward(endpoint: string, agent: Agent, { headers, body }: AwsCall): Promise<AwsAnswer> {
  return new Promise((resolve, reject) => {
    const asked = request(endpoint, { method: 'POST', agent, headers: { ...headers, 'content-length': body.length } })
    asked.once('error', reject)
    asked.once('response', response => {
      const chunks: Buffer[] = []
      response.on('data', chunk => chunks.push(chunk))
      response.once('error', reject)
      response.once('end', () => {
        const kept = ['content-type', 'x-amz-crc32', 'x-amzn-requestid']
        const answered = Object.entries(response.headers).filter(([name]) => kept.includes(name))
        resolve({
          status: response.statusCode ?? 500,
          headers: Object.fromEntries(answered.map(([name, value]) => [name, String(value)])),
          body: Buffer.concat(chunks),
        })
      })
    })
    asked.end(body)
  })
}
