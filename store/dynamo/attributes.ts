import type { AttributeValue } from '@aws-sdk/client-dynamodb'

/** An item as the wire has it: attribute name to typed value. */
export type Item = Record<string, AttributeValue>

/** Values as the wire takes them. Numbers travel as decimal text; ours are whole and exact in a JavaScript number. */
export const num = (value: number): AttributeValue.NMember => ({ N: String(value) })
export const str = (value: string): AttributeValue.SMember => ({ S: value })
/** The attribute `x` of what ends at a time: TTL goes by seconds, and not before the end. */
export const ttl = (endsAtMs: number) => num(Math.ceil(endsAtMs / 1000))
export const bin = (value: Uint8Array): AttributeValue.BMember => ({ B: value })
export const bool = (value: boolean): AttributeValue.BOOLMember => ({ BOOL: value })
export const numList = (values: readonly number[]): AttributeValue.LMember => ({ L: values.map(num) })
export const strList = (values: readonly string[]): AttributeValue.LMember => ({ L: values.map(str) })
/** A set, which `ADD` and `DELETE` change without a read. It cannot be empty: an absent attribute stands for that. */
export const strSet = (values: readonly string[]): AttributeValue.SSMember => ({ SS: [...values] })

export function numOf(item: Item, attribute: string): number {
  const text = item[attribute]?.N
  if (text === undefined) throw missing(item, attribute, 'number')
  return Number(text)
}

export function strOf(item: Item, attribute: string): string {
  const text = item[attribute]?.S
  if (text === undefined) throw missing(item, attribute, 'text')
  return text
}

/** A plain `Uint8Array` on the received bytes: decoders may answer with a `Buffer`, whose methods differ. */
export function binOf(item: Item, attribute: string): Uint8Array {
  const bytes = item[attribute]?.B
  if (bytes === undefined) throw missing(item, attribute, 'bytes')
  return new Uint8Array(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength)
}

export function boolOf(item: Item, attribute: string): boolean {
  const value = item[attribute]?.BOOL
  if (value === undefined) throw missing(item, attribute, 'boolean')
  return value
}

export function numListOf(item: Item, attribute: string): number[] {
  const values = item[attribute]?.L
  if (values === undefined) throw missing(item, attribute, 'list')
  return values.map(value => Number(value.N))
}

export function strListOf(item: Item, attribute: string): string[] {
  const values = item[attribute]?.L
  if (values === undefined) throw missing(item, attribute, 'list')
  return values.map(value => value.S ?? '')
}

/** Sorted, since a set has no order of its own. */
export const strSetOf = (item: Item, attribute: string): string[] => [...(item[attribute]?.SS ?? [])].sort()

/**
 * What an item counts for capacity, as DynamoDB sizes it: names and values in bytes of UTF-8, a number as half its
 * digits and one. Close, not exact: used only where an answer does not say what it cost.
 */
export function itemBytes(item: Item): number {
  let total = 0
  for (const [name, value] of Object.entries(item)) total += Buffer.byteLength(name) + valueBytes(value)
  return total
}

function valueBytes(value: AttributeValue): number {
  if (value.N !== undefined) return Math.ceil(value.N.length / 2) + 1
  if (value.S !== undefined) return Buffer.byteLength(value.S)
  if (value.B !== undefined) return value.B.byteLength
  if (value.SS !== undefined) return value.SS.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  if (value.L !== undefined) return value.L.reduce((sum, entry) => sum + 1 + valueBytes(entry), 3)
  return 1
}

const missing = (item: Item, attribute: string, type: string) =>
  new TypeError(
    `attribute "${attribute}" should be a ${type} in the item ${JSON.stringify({ pk: item.pk, sk: item.sk, q: item.q, o: item.o })}`,
  )
