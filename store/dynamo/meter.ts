import type { Store } from '../../core/store.ts'

/** The operations of the port, by which requests and capacity are counted. */
export type Operation = Exclude<keyof Store, 'appendsInOrder' | 'close'>

export type Capacity = { readUnits: number; writeUnits: number }

/** Called once for each request that was sent, whatever became of it. */
export type OnCapacity = (operation: Operation, capacity: Capacity) => void

export type CapacityTotals = Capacity & { requests: number }

/** Sums what the store's requests cost, per operation. */
export function createCapacityMeter() {
  const totals = new Map<Operation, CapacityTotals>()
  const none = (): CapacityTotals => ({ requests: 0, readUnits: 0, writeUnits: 0 })
  const add = (to: CapacityTotals, what: CapacityTotals) => {
    to.requests += what.requests
    to.readUnits += what.readUnits
    to.writeUnits += what.writeUnits
    return to
  }

  const onCapacity: OnCapacity = (operation, capacity) => {
    totals.set(operation, add(totals.get(operation) ?? none(), { requests: 1, ...capacity }))
  }

  return {
    onCapacity,
    of: (operation: Operation): CapacityTotals => ({ ...none(), ...totals.get(operation) }),
    all: (): Partial<Record<Operation, CapacityTotals>> => Object.fromEntries(totals),
    sum: (): CapacityTotals => [...totals.values()].reduce(add, none()),
    clear: () => totals.clear(),
  }
}

export type CapacityMeter = ReturnType<typeof createCapacityMeter>
