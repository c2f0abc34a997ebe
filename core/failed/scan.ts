import type { Core } from '../core.ts'
import { limits } from '../protocol/limits.ts'
import { firstOfId, idOf } from './names.ts'
import { compareFirst, type FailedMessage, type FirstPlace } from './records.ts'
import type { FailedScene } from './scene.ts'

/** Which records are looked at, and in which order. */
export type FailedRange = {
  fromMs?: number | undefined
  toMs?: number | undefined
  /** Goes on behind this one. */
  after?: string | undefined
  direction: 'forward' | 'backward'
}

/** A record, and how it is to be taken. */
export type Seen = { record: FailedMessage; state: FailedMessage['state'] }

/** `next`: the last one that was looked at, if there are more. */
export type Collected = { found: Seen[]; next?: string }

const recordsPerRead = 100

/**
 * The records of a range that match, at most `limit`. However few do, no more than a thousand are looked at in one go, some
 * 250 read units at 1 KB each: then it is `next` from which to go on.
 */
export async function collectFailed(
  core: Core,
  scene: FailedScene,
  range: FailedRange,
  { limit, matches }: { limit: number; matches: (seen: Seen) => boolean },
): Promise<Collected> {
  const found: Seen[] = []
  let last: FailedMessage | undefined
  let examined = 0
  for await (const record of readRecords(core, scene, range)) {
    if (last && (found.length === limit || examined === limits.maxFailedExamined)) return { found, next: idOf(last) }
    examined++
    last = record
    const seen = { record, state: scene.stateOf(record) }
    if (record.endsAtMs > core.clock.now() && matches(seen)) found.push(seen)
  }
  return { found }
}

/** All records of a range, also those whose time has ended: they cost as much. */
async function* readRecords(
  core: Core,
  { failOf }: FailedScene,
  range: FailedRange,
): AsyncGenerator<FailedMessage, void> {
  const { direction } = range
  let { from, to } = boundsOf(range)
  while (compareFirst(from, to) <= 0) {
    const page = await core.store.listFailed({ ...failOf, from, to, direction, limit: recordsPerRead })
    yield* page
    const last = page.at(-1)
    if (last === undefined || page.length < recordsPerRead) return
    if (direction === 'forward') from = behind(last.first)
    else to = before(last.first)
  }
}

function boundsOf({ fromMs = 0, toMs = Number.MAX_SAFE_INTEGER, after, direction }: FailedRange) {
  const from = { atMs: fromMs, queueId: 0, offset: 0 }
  const to = { ...farthest, atMs: toMs }
  if (after === undefined) return { from, to }
  // Whoever asks for another range than before may be behind it already, or not have come to it.
  const next = direction === 'forward' ? behind(firstOfId(after)) : before(firstOfId(after))
  if (direction === 'forward') return { from: compareFirst(next, from) > 0 ? next : from, to }
  return { from, to: compareFirst(next, to) < 0 ? next : to }
}

const farthest = { queueId: Number.MAX_SAFE_INTEGER, offset: Number.MAX_SAFE_INTEGER }

/** The first place that may come behind one; no two places differ by less. */
const behind = (first: FirstPlace): FirstPlace => ({ ...first, offset: first.offset + 1 })
const before = (first: FirstPlace): FirstPlace => ({ ...first, offset: first.offset - 1 })
