type Request = { TableName?: string; RequestItems?: object; TransactItems?: Record<string, { TableName: string }>[] }

/** What IAM asks a role for when it makes a request of DynamoDB. A transaction needs the actions of its items. */
export function actionsOf(commandName: string, input: object): { table: string; action: string }[] {
  const { TableName, RequestItems, TransactItems }: Request = input
  if (TransactItems !== undefined) {
    return TransactItems.flatMap(item =>
      Object.entries(item).map(([kind, { TableName: table }]) => ({
        table,
        action: `dynamodb:${kind === 'ConditionCheck' ? 'ConditionCheckItem' : `${kind}Item`}`,
      })),
    )
  }
  const action = `dynamodb:${commandName.replace(/Command$/, '')}`
  return (RequestItems === undefined ? [TableName ?? ''] : Object.keys(RequestItems)).map(table => ({ table, action }))
}

/** The partition in which a write of one item is, as far as it is called by a text: `FAILED#` of `FAILED#group#topic`. */
export function partitionOf(input: object): string | undefined {
  const { Key, Item } = input as Partial<Record<'Key' | 'Item', { pk?: { S?: string } }>>
  return /^[A-Z]+#?/.exec((Key ?? Item)?.pk?.S ?? '')?.[0]
}
