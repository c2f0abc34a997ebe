import { createLru } from './lru.ts'
import type { GroupSnapshot } from './model.ts'
import type { Clock } from './protocol/clock.ts'
import type { Store } from './store.ts'

/** Groups as consumers ask for them: when one has changed, all of its consumers ask at once, and share the answer. */
export type Snapshots = {
  /** All of a group, not older than a version of it. Offsets that were committed within `windowMs` may be missing. */
  get(groupName: string, version: number): Promise<GroupSnapshot | undefined>
}

/** So long a read is shared. */
const windowMs = 100
/**
 * In so long a time a group is read so often at most. While hundreds of queues change hands the version rises with each,
 * and a read of a group of a thousand takes as long as serving a hundred requests.
 */
const readsPerWindow = 4
const maxRemembered = 1_000

type Entry = { readAtMs: number; reads: number; windowFromMs: number; snapshot: Promise<GroupSnapshot | undefined> }

export function createSnapshots(store: Pick<Store, 'readGroup'>, clock: Clock): Snapshots {
  const known = createLru<string, Entry>(maxRemembered)

  function read(groupName: string, before: Entry | undefined): Promise<GroupSnapshot | undefined> {
    const nowMs = clock.monotonic()
    const goesOn = before !== undefined && nowMs - before.windowFromMs < windowMs
    const entry: Entry = {
      readAtMs: nowMs,
      reads: goesOn ? before.reads + 1 : 1,
      windowFromMs: goesOn ? before.windowFromMs : nowMs,
      snapshot: store.readGroup(groupName),
    }
    known.set(groupName, entry)
    entry.snapshot.catch(() => {
      if (known.peek(groupName) === entry) known.delete(groupName)
    })
    return entry.snapshot
  }

  return {
    async get(groupName, version) {
      for (;;) {
        const entry = known.get(groupName)
        const nowMs = clock.monotonic()
        if (entry === undefined || nowMs - entry.readAtMs >= windowMs) return read(groupName, entry)
        const snapshot = await entry.snapshot
        if (snapshot !== undefined && snapshot.group.version >= version) return snapshot
        // Somebody else may have read it meanwhile.
        if (known.peek(groupName) !== entry) continue
        // The window may have begun long before the entry was read, and be over.
        const leftMs = entry.windowFromMs + windowMs - clock.monotonic()
        if (entry.reads < readsPerWindow || leftMs <= 0) return read(groupName, entry)
        await clock.sleep(leftMs)
      }
    },
  }
}
