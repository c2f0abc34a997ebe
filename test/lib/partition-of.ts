/** The partition in which a write of one item is, as far as it is called by a text: `FAILED#` of `FAILED#group#topic`. */
export function partitionOf(input: object): string | undefined {
  const { Key, Item } = input as Partial<Record<'Key' | 'Item', { pk?: { S?: string } }>>
  return /^[A-Z]+#?/.exec((Key ?? Item)?.pk?.S ?? '')?.[0]
}
