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
