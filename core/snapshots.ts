import { createLru } from './lru.ts'
import type { GroupSnapshot } from './model.ts'
import type { Clock } from './protocol/clock.ts'
import type { Store } from './store.ts'

/** Groups as consumers ask for them: when one has changed, all of its consumers ask at once, and share the answer. */
export type Snapshots = {
  /** All of a group, not older than a version of it. Offsets that were committed within `sharedMs` may be missing. */
  get(groupName: string, version: number): Promise<GroupSnapshot | undefined>
}

/** So long a read is shared. */
const sharedMs = 100
/**
 * So many reads come at once, if need be; but in a longer time reads take a tenth of it at most. While hundreds of queues
 * change hands the version rises with each, and a read of a group of a thousand takes as long as serving a hundred requests.
 */
const readsPerWindow = 4
const windowPerReadTime = 40
const longestWindowMs = 1_000
const maxRemembered = 1_000

type Entry = {
  readAtMs: number
  reads: number
  windowFromMs: number
  windowMs: number
  snapshot: Promise<GroupSnapshot | undefined>
}

export function createSnapshots(store: Pick<Store, 'readGroup'>, clock: Clock): Snapshots {
  const known = createLru<string, Entry>(maxRemembered)

  function read(groupName: string, before: Entry | undefined): Promise<GroupSnapshot | undefined> {
    const nowMs = clock.monotonic()
    const goesOn = before !== undefined && nowMs - before.windowFromMs < before.windowMs
    const entry: Entry = {
      readAtMs: nowMs,
      reads: goesOn ? before.reads + 1 : 1,
      windowFromMs: goesOn ? before.windowFromMs : nowMs,
      windowMs: before?.windowMs ?? 0,
      snapshot: store.readGroup(groupName),
    }
    known.set(groupName, entry)
    entry.snapshot.then(
      () => {
        entry.windowMs = Math.min(longestWindowMs, (clock.monotonic() - nowMs) * windowPerReadTime)
      },
      () => {
        if (known.peek(groupName) === entry) known.delete(groupName)
      },
    )
    return entry.snapshot
  }

  return {
    async get(groupName, version) {
      for (;;) {
        const entry = known.get(groupName)
        if (entry === undefined || clock.monotonic() - entry.readAtMs >= sharedMs) {
          if (entry === undefined || isOpen(entry)) return read(groupName, entry)
        } else {
          const snapshot = await entry.snapshot
          if (snapshot !== undefined && snapshot.group.version >= version) return snapshot
          // Somebody else may have read it meanwhile.
          if (known.peek(groupName) !== entry) continue
          if (isOpen(entry)) return read(groupName, entry)
        }
        await clock.sleep(leftOf(entry))
      }
    },
  }

  function isOpen(entry: Entry): boolean {
    return entry.reads < readsPerWindow || leftOf(entry) <= 0
  }

  function leftOf(entry: Entry): number {
    return entry.windowFromMs + entry.windowMs - clock.monotonic()
  }
}
