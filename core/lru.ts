import { LRUCache } from 'lru-cache'

/**
 * A map of at most `maxEntries`, which forgets what was not used for longest. Bounded by size and not by number, for which
 * lru-cache makes room in advance: a millisecond of every cold start for each map.
 */
export function createLru<K extends NonNullable<unknown>, V extends NonNullable<unknown>>(
  maxEntries: number,
): LRUCache<K, V> {
  return new LRUCache<K, V>({ maxSize: maxEntries, sizeCalculation: () => 1 })
}
