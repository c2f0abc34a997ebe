import type { Core } from '../core.ts'
import { firstOfId, idOf } from '../failed/names.ts'
import { compareFirst, type FailedMessage } from '../failed/records.ts'
import { type Outcomes, resendAll, unlessAway } from '../failed/resend.ts'
import { type Collected, collectFailed } from '../failed/scan.ts'
import { type FailedScene, openFailed } from '../failed/scene.ts'
import { forEachOf } from '../for-each-of.ts'
import { PmqError } from '../protocol/errors.ts'
import type { ChangeFailedView, DropFailedRequest, FailedOutcome, ResendFailedRequest } from '../protocol/failed.ts'
import { limits } from '../protocol/limits.ts'
import { isWanted } from './failed.ts'

/** Has dead letters handled again, by the same group: each one is as if it had failed for the first time just now. */
export async function resendFailed(
  core: Core,
  groupName: string,
  topicName: string,
  request: ResendFailedRequest,
): Promise<ChangeFailedView> {
  const scene = await openFailed(core, groupName, topicName)
  if (!scene.subscription) {
    const reason = 'nobody would handle them'
    throw new PmqError('conflict', `group ${groupName} does not subscribe to topic ${topicName} any more: ${reason}`)
  }
  return changeEach(core, scene, request, records => resendAll(core, scene, records))
}

/** Gives dead letters up. They stay listed, with the reason, until their time is over. A write for each. */
export async function dropFailed(
  core: Core,
  groupName: string,
  topicName: string,
  request: DropFailedRequest,
): Promise<ChangeFailedView> {
  const scene = await openFailed(core, groupName, topicName)
  const dropReason = request.reason.toWellFormed()
  return changeEach(core, scene, request, async records => {
    const outcomes: Outcomes = new Map()
    const settledAtMs = core.clock.now()
    await forEachOf(records, async record => {
      const { claimedUntilMs: _over, ...kept } = record
      const dropped: FailedMessage = { ...kept, state: 'dropped', dropReason, settledAtMs }
      const outcome = await unlessAway(() => core.store.replaceFailed(record, dropped, settledAtMs))
      outcomes.set(record, outcome === 'replaced' ? 'dropped' : outcome === 'refused' ? 'changed' : 'unavailable')
    })
    return outcomes
  })
}

/** So many at once are in memory, 256 KB each at most. */
const atOnce = 25

type Change = (records: FailedMessage[]) => Promise<Outcomes>

async function changeEach(
  core: Core,
  scene: FailedScene,
  request: ResendFailedRequest,
  change: Change,
): Promise<ChangeFailedView> {
  const { found, next, others } = await select(core, scene, request)
  const results: ChangeFailedView['results'] = [...others]
  const matched = found.length
  for (let from = 0; from < matched && !request.dryRun; from += atOnce) {
    const records = found.slice(from, from + atOnce).map(({ record }) => record)
    const outcomes = await change(records)
    for (const record of records) {
      results.push({ failedId: idOf(record), outcome: outcomes.get(record) ?? 'unavailable' })
    }
  }
  return { matched, results: request.dryRun ? [] : results, ...(next !== undefined && { next }) }
}

type Selected = Collected & { others: { failedId: string; outcome: FailedOutcome }[] }

/** The dead letters that are meant, the oldest first, so that those of a key come in their order; and those that are none. */
async function select(core: Core, scene: FailedScene, request: ResendFailedRequest): Promise<Selected> {
  const { of, after, limit, dryRun } = request
  if (of !== 'all' && 'failedIds' in of) return selectNamed(core, scene, of.failedIds)
  const filters = of === 'all' ? {} : of
  const collected = await collectFailed(
    core,
    scene,
    { ...filters, after, direction: 'forward' },
    { limit: dryRun ? limits.maxFailedExamined : limit, matches: isWanted({ ...filters, state: 'exhausted' }) },
  )
  return { ...collected, others: [] }
}

async function selectNamed(core: Core, scene: FailedScene, failedIds: readonly string[]): Promise<Selected> {
  const names = [...new Set(failedIds.map(id => idOf({ first: firstOfId(id) })))]
  const read = await core.store.readFailed(names.map(id => ({ ...scene.failOf, first: firstOfId(id) })))
  const live = read.filter(record => record.endsAtMs > core.clock.now())
  const seen = live.map(record => ({ record, state: scene.stateOf(record) }))
  const outcomeOf = (id: string): FailedOutcome | undefined => {
    const one = seen.find(({ record }) => idOf(record) === id)
    return one === undefined ? 'not_found' : one.state === 'exhausted' ? undefined : 'not_exhausted'
  }
  const found = seen
    .filter(({ state }) => state === 'exhausted')
    .sort((a, b) => compareFirst(a.record.first, b.record.first))
  const others = names.flatMap(failedId => {
    const outcome = outcomeOf(failedId)
    return outcome ? [{ failedId, outcome }] : []
  })
  return { found, others }
}
