import type { ConsumedCapacity } from '@aws-sdk/client-dynamodb'
import { type Item, itemBytes } from './attributes.ts'
import { refusalOf, refusalsOf } from './errors.ts'
import type { Capacity } from './meter.ts'

export type Metered = { ConsumedCapacity?: ConsumedCapacity | ConsumedCapacity[] | undefined }

/** What an answered request cost, by its own account. */
export function consumedBy(kind: 'read' | 'write', answer: Metered): Capacity {
  const units = [answer.ConsumedCapacity ?? []].flat().reduce((sum, each) => sum + (each.CapacityUnits ?? 0), 0)
  return kind === 'read' ? { readUnits: units, writeUnits: 0 } : { readUnits: 0, writeUnits: units }
}

/**
 * What a failed request cost. A refused condition is charged like the write that it prevented (by the larger of the two
 * items), though the refusal does not say so; what was throttled or never answered counts nothing.
 */
export function consumedByFailure(error: unknown, newItem?: Item): Capacity {
  const refusal = refusalOf(error)
  if (refusal !== undefined) return { readUnits: 0, writeUnits: writeUnits(newItem, refusal.old) }
  const refusals = refusalsOf(error) ?? []
  return { readUnits: 0, writeUnits: refusals.reduce((sum, each) => sum + 2 * writeUnits(each?.old), 0) }
}

const writeUnits = (...items: (Item | undefined)[]) =>
  Math.max(1, ...items.map(item => Math.ceil((item === undefined ? 0 : itemBytes(item)) / 1024)))
