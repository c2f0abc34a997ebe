import type { Item } from './attributes.ts'

export type ExpressionTexts = {
  ConditionExpression?: string
  UpdateExpression?: string
  KeyConditionExpression?: string
  ProjectionExpression?: string
}

export type Expressions<T> = T & {
  ExpressionAttributeNames: Record<string, string>
  ExpressionAttributeValues?: Item
}

/**
 * Expression parameters of a request. Attributes are written `#name` in every text and bound here, so that none of them
 * can collide with DynamoDB's five hundred reserved words (`offset` and `name` are among them).
 */
export function expressions<T extends ExpressionTexts>(texts: T, values: Item = {}): Expressions<T> {
  const names: Record<string, string> = {}
  for (const text of Object.values(texts)) {
    for (const [token, name] of text.matchAll(/#(\w+)/g)) if (name !== undefined) names[token] = name
  }
  const valueEntries = Object.entries(values).map(([name, value]) => [`:${name}`, value] as const)
  return {
    ...texts,
    ExpressionAttributeNames: names,
    ...(valueEntries.length > 0 && { ExpressionAttributeValues: Object.fromEntries(valueEntries) }),
  }
}

/** Joins clauses into a condition. They are named so that a condition reads as the rule that it is. */
export const allOf = (clauses: Record<string, string>): string => Object.values(clauses).join(' AND ')

/** The update that replaces these attributes by values of the same names. */
export const setAll = (attributes: Item): string =>
  `SET ${Object.keys(attributes)
    .map(name => `#${name} = :${name}`)
    .join(', ')}`

/** Conditions on a record of the registry as a whole. */
export const isNew = 'attribute_not_exists(#pk)'
export const exists = 'attribute_exists(#pk)'
