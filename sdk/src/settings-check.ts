import type { Clock } from '../../core/protocol/clock.ts'
import type { AssignedQueue } from '../../core/protocol/membership.ts'

/** What a settings check is made of. */
export type SettingsCheckDeps = {
  clock: Clock
  random: () => number
  /** The usual time between two looks; 0: never look. */
  intervalMs: number
}

/** Decides when a consumer compares what it works with against what the service says, and which differences count. */
export type SettingsCheck = {
  /** When the next look is due, on the monotonic clock; undefined: never. */
  readonly dueAtMs: number | undefined
  /**
   * Takes the names of what a look has found to differ; none also where it could not tell. Returns those that have stood
   * in `looksToCount` looks in a row: they are no change that is still on its way.
   */
  note(names: readonly string[]): readonly string[]
}

/** Thirty seconds are longer than any answer of the service is old, and than a change takes to arrive. */
const looksToCount = 4
const repeatMs = 10_000

/** Makes a check whose first look is due after the interval. */
export function createSettingsCheck({ clock, random, intervalMs }: SettingsCheckDeps): SettingsCheck {
  let standing: readonly string[] = []
  let looks = 0
  let dueAtMs = usual()

  /** Spread, so that consumers that were started together do not look together. */
  function usual(): number | undefined {
    return intervalMs === 0 ? undefined : clock.monotonic() + intervalMs * (0.75 + random() / 2)
  }

  return {
    get dueAtMs() {
      return dueAtMs
    },
    note(names) {
      standing = looks === 0 ? names : standing.filter(name => names.includes(name))
      looks = standing.length > 0 ? looks + 1 : 0
      const isSure = looks === looksToCount
      if (isSure) looks = 0
      dueAtMs = looks > 0 ? clock.monotonic() + repeatMs : usual()
      return isSure ? standing : []
    },
  }
}

/** They move while a queue is worked on, and are no settings. */
const moving = new Set<string>([
  'offset',
  'lastId',
  'deaths',
  'suspectOffset',
  'suspectFailures',
] satisfies (keyof AssignedQueue)[])

/** The names of what differs between the queues that are worked on and those that the service says are assigned. */
export function compareQueues(working: readonly AssignedQueue[], assigned: readonly AssignedQueue[]): string[] {
  const names = new Set<string>()
  const told = new Map(assigned.map(queue => [queue.queueOffsetId, queue]))
  if (told.size !== working.length) names.add('queues')
  for (const queue of working) {
    const other = told.get(queue.queueOffsetId)
    if (!other) names.add('queues')
    for (const name of other ? Object.keys({ ...queue, ...other }) : []) {
      const key = name as keyof AssignedQueue
      if (!moving.has(name) && queue[key] !== other?.[key]) names.add(name)
    }
  }
  return [...names]
}
