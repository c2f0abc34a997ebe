import {
  CreateTableCommand,
  type CreateTableCommandInput,
  DynamoDBClient,
  UpdateTimeToLiveCommand,
} from '@aws-sdk/client-dynamodb'
import { account } from './template/account.ts'
import { asList, asRecord, asText, expectOnly, type Properties } from './template/read.ts'
import type { Stack } from './template/stack.ts'

/** What CloudFormation would do after a table is there; nothing of a function's view depends on it. */
const afterwards = [
  'DeletionProtectionEnabled',
  'PointInTimeRecoverySpecification',
  'SSESpecification',
  'Tags',
  'TableName',
]
const created = [
  'AttributeDefinitions',
  'BillingMode',
  'KeySchema',
  'GlobalSecondaryIndexes',
  'ProvisionedThroughput',
  'StreamSpecification',
]

/** Makes the tables of the template, by its own properties. Answers with the partition key of each. */
export async function createTables(stack: Stack, endpoint: string): Promise<Map<string, string>> {
  const credentials = { accessKeyId: 'rehearsal', secretAccessKey: 'rehearsal' }
  const client = new DynamoDBClient({ endpoint, region: account.region, credentials })
  const partitionKeys = new Map<string, string>()
  try {
    for (const { id, ref: TableName, properties } of stack.all('AWS::DynamoDB::Table')) {
      expectOnly(properties, id, [...created, 'TimeToLiveSpecification', ...afterwards])
      const given = Object.fromEntries(Object.entries(properties).filter(([name]) => created.includes(name)))
      // As CloudFormation does: what the template says is the request.
      await client.send(new CreateTableCommand({ ...given, TableName } as CreateTableCommandInput))
      await setTimeToLive(client, TableName, asRecord(properties.TimeToLiveSpecification ?? {}, id))
      partitionKeys.set(TableName, partitionKeyOf(properties, id))
    }
  } finally {
    client.destroy()
  }
  return partitionKeys
}

async function setTimeToLive(
  client: DynamoDBClient,
  TableName: string,
  { AttributeName, Enabled }: Properties,
): Promise<void> {
  if (Enabled !== true) return
  const TimeToLiveSpecification = { AttributeName: asText(AttributeName, TableName), Enabled }
  await client.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification }))
}

function partitionKeyOf({ KeySchema }: Properties, id: string): string {
  const key = asList(KeySchema)
    .map(part => asRecord(part, id))
    .find(({ KeyType }) => KeyType === 'HASH')
  return asText(key?.AttributeName, `the partition key of ${id}`)
}
