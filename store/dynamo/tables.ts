import {
  CreateTableCommand,
  type CreateTableCommandInput,
  DescribeTimeToLiveCommand,
  type DynamoDBClient,
  ResourceInUseException,
  UpdateTimeToLiveCommand,
  type UpdateTimeToLiveCommandInput,
  waitUntilTableExists,
} from '@aws-sdk/client-dynamodb'

export type TableNames = { logTable: string; registryTable: string }

export type TableDefinition = { table: CreateTableCommandInput; timeToLive: UpdateTimeToLiveCommandInput }

/**
 * The two tables. Both are billed by request, so that what is idle costs its storage alone. DynamoDB deletes an item some
 * time after the second that its attribute `x` names, if it has one, at no cost in write units.
 */
export function tableDefinitions({ logTable, registryTable }: TableNames): TableDefinition[] {
  return [
    {
      table: {
        TableName: logTable,
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: [
          { AttributeName: 'q', AttributeType: 'N' },
          { AttributeName: 'o', AttributeType: 'N' },
        ],
        KeySchema: [
          { AttributeName: 'q', KeyType: 'HASH' },
          { AttributeName: 'o', KeyType: 'RANGE' },
        ],
      },
      timeToLive: { TableName: logTable, TimeToLiveSpecification: { AttributeName: 'x', Enabled: true } },
    },
    {
      table: {
        TableName: registryTable,
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: [
          { AttributeName: 'pk', AttributeType: 'S' },
          { AttributeName: 'sk', AttributeType: 'S' },
        ],
        KeySchema: [
          { AttributeName: 'pk', KeyType: 'HASH' },
          { AttributeName: 'sk', KeyType: 'RANGE' },
        ],
      },
      timeToLive: { TableName: registryTable, TimeToLiveSpecification: { AttributeName: 'x', Enabled: true } },
    },
  ]
}

/** Creates what is missing of the tables, and waits until they can be used. Tables that exist are left as they are. */
export async function createTables(client: DynamoDBClient, names: TableNames): Promise<void> {
  for (const { table, timeToLive } of tableDefinitions(names)) {
    try {
      await client.send(new CreateTableCommand(table))
    } catch (error) {
      if (!(error instanceof ResourceInUseException)) throw error
    }
    const { TableName } = table
    await waitUntilTableExists({ client, maxWaitTime: 60, minDelay: 1 }, { TableName })
    // A run before this one may have ended between the table and its TTL; enabling it again would be refused.
    const { TimeToLiveDescription } = await client.send(new DescribeTimeToLiveCommand({ TableName }))
    const isOff = ['DISABLED', undefined].includes(TimeToLiveDescription?.TimeToLiveStatus)
    if (isOff) await client.send(new UpdateTimeToLiveCommand(timeToLive))
  }
}
