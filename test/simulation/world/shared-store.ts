import type { Group } from '../../../core/model.ts'
import type { Store } from '../../../core/store.ts'
import { openSqliteStore } from '../../../store/sqlite/open.ts'
import { createMemoryLog, type MemoryLog } from './memory-log.ts'

/** What all containers have in common: the registry and the log, as they are. Answers at once, and the truth. */
export type SharedStore = {
  store: Store
  /** Absent where the whole is SQLite's, as on one machine. */
  log: MemoryLog | undefined
  /** A group's record as it was at some time of the last `staleMs`; the truth if it has not changed since. */
  groupAsOf(groupName: string, atMs: number): Promise<Group | undefined>
  /** Where a queue's log ends. */
  endOf(queueId: number): Promise<number>
}

const changesOfGroups = [
  'createGroup',
  'updateGroup',
  'removeGroup',
  'createSubscription',
  'removeSubscription',
  'updateSubscription',
  'askRebalance',
  'raiseMeta',
  'finishRebalance',
  'joinGroup',
  'leaveGroup',
] as const satisfies (keyof Store)[]

/** Nobody is told what was before. */
const rememberedMs = 2_000

export function openSharedStore(now: () => number, appendsInOrder: boolean): SharedStore {
  const sqlite = openSqliteStore(':memory:')
  const log = appendsInOrder ? undefined : createMemoryLog(now)
  const former = new Map<string, { untilMs: number; group: Promise<Group | undefined> }[]>()

  function note(groupName: string) {
    const records = (former.get(groupName) ?? []).filter(({ untilMs }) => untilMs > now() - rememberedMs)
    records.push({ untilMs: now(), group: sqlite.readGroupRecord(groupName) })
    former.set(groupName, records)
  }

  const everything = () => true
  const store: Store = log ? { ...sqlite, ...log.view(everything), ...putInto(log) } : { ...sqlite }
  for (const name of changesOfGroups) {
    const change = store[name] as (...args: unknown[]) => Promise<unknown>
    const noted = (...args: unknown[]) => {
      note(groupNameOf(args[0]))
      return change(...args)
    }
    Object.assign(store, { [name]: noted })
  }

  return {
    store,
    log,
    async groupAsOf(groupName, atMs) {
      const record = former.get(groupName)?.find(({ untilMs }) => untilMs > atMs)
      return record ? record.group : sqlite.readGroupRecord(groupName)
    },
    async endOf(queueId) {
      if (log) return log.endOf(queueId)
      const query = { queueId, fromOffset: Number.MAX_SAFE_INTEGER, limit: 1, consistent: true }
      const [tail] = await sqlite.readHeaders({ ...query, direction: 'backward' })
      return tail ? tail.base + tail.count : 1
    },
  }
}

function putInto(log: MemoryLog): Pick<Store, 'appendsInOrder' | 'appendBatch'> {
  return {
    appendsInOrder: false,
    async appendBatch(batch) {
      const winner = log.put(batch)
      return winner ? { outcome: 'taken', winner } : { outcome: 'stored' }
    },
  }
}

function groupNameOf(about: unknown): string {
  if (typeof about === 'string') return about
  const { groupName, name } = about as { groupName?: string; name?: string }
  return groupName ?? name ?? ''
}
