/** Index of the first item, of items in the order of `rankOf`, that ranks at `rank` or above. */
export function lowerBound<T>(items: readonly T[], rankOf: (item: T) => number, rank: number): number {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const item = items[middle]
    if (item !== undefined && rankOf(item) < rank) low = middle + 1
    else high = middle
  }
  return low
}

/** The map's entry at `key`, made if there is none. */
export function entryOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const found = map.get(key)
  if (found !== undefined) return found
  const made = make()
  map.set(key, made)
  return made
}
