/** What DynamoDB asks IAM about a request: which action on which table, or which index of it. */
export type TableAction = { action: string; table: string; index?: string; keys: Item[] }
type Item = Record<string, unknown>

type Request = {
  TableName?: string
  IndexName?: string
  Key?: Item
  Item?: Item
  RequestItems?: Record<string, { Keys?: Item[] } | Item[]>
  TransactItems?: Record<string, { TableName: string; Key?: Item; Item?: Item }>[]
}

/** A transaction needs the actions of its items: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html */
export function actionsOf(operation: string, input: object): TableAction[] {
  const { TableName, IndexName, Key, Item, RequestItems, TransactItems }: Request = input
  if (TransactItems !== undefined) {
    return TransactItems.flatMap(item =>
      Object.entries(item).map(([kind, { TableName: table, Key, Item }]) => ({
        table,
        action: `dynamodb:${kind === 'ConditionCheck' ? 'ConditionCheckItem' : `${kind}Item`}`,
        keys: [Key ?? Item ?? {}],
      })),
    )
  }
  const action = `dynamodb:${operation}`
  if (RequestItems !== undefined) {
    return Object.entries(RequestItems).map(([table, asked]) => ({
      table,
      action,
      keys: Array.isArray(asked) ? [] : (asked.Keys ?? []),
    }))
  }
  return [
    {
      table: TableName ?? '',
      action,
      ...(IndexName && { index: IndexName }),
      keys: [Key ?? Item].filter(key => key !== undefined),
    },
  ]
}
