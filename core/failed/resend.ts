import { publishTo } from '../client/publish.ts'
import type { InternalMessage } from '../client/store-placement.ts'
import type { Core } from '../core.ts'
import { forEachOf } from '../for-each-of.ts'
import { readMessagesAt } from '../log/read-at.ts'
import type { FailedOutcome } from '../protocol/failed.ts'
import type { BatchMessage } from '../protocol/pull.ts'
import { StoreError } from '../store.ts'
import { placesOf, recordFailures } from './record.ts'
import type { FailedMessage } from './records.ts'
import type { FailedScene } from './scene.ts'
import { trailOfResent } from './trail.ts'

/** What has become of each record. */
export type Outcomes = Map<FailedMessage, FailedOutcome>

/**
 * For so long nobody else resends a message: longer than a Lambda has for a request. Whoever died at it in between has
 * resent the message or not; it is a dead letter again when this time is over, and who resends it then may do so twice.
 */
const claimMs = 30_000

/**
 * Appends dead letters to their fail topic again, in this order and with a count of 0, so that they are handled as new
 * failures are: at once, and again as often as the subscription says. First the records are claimed, then the log is
 * written, then the records: what is in the log is resent, whatever the records say, and they say it at the latest when
 * the message is handled. Two writes for each message.
 */
export async function resendAll(core: Core, scene: FailedScene, records: readonly FailedMessage[]): Promise<Outcomes> {
  const outcomes: Outcomes = new Map()
  await claimEach(core, records, outcomes)
  const claimed = records.filter(record => !outcomes.has(record))
  const letters = await unlessAway(() => readLetters(core, claimed))
  for (const record of claimed) outcomes.set(record, letters ? 'gone' : 'unavailable')
  if (!letters || letters.length === 0) return outcomes
  for (const { record } of letters) outcomes.set(record, 'unavailable')
  const msgs = letters.map(({ record, message }) => toResent(record, message, core.clock.now()))
  const { offsets = [] } = await publishTo(core, scene.failTopic, { msgs })
  for (const { first, count, error } of offsets) {
    if (error !== undefined) continue
    for (const { record } of letters.slice(first, first + count)) outcomes.set(record, 'resent')
  }
  await recordFailures(core, scene.failOf, offsets.flatMap(placesOf), undefined)
  return outcomes
}

async function claimEach(core: Core, records: readonly FailedMessage[], outcomes: Outcomes): Promise<void> {
  const nowMs = core.clock.now()
  await forEachOf(records, async record => {
    const claim = { ...record, claimedUntilMs: nowMs + claimMs }
    const outcome = await unlessAway(() => core.store.replaceFailed(record, claim, nowMs))
    if (outcome !== 'replaced') outcomes.set(record, outcome === 'refused' ? 'changed' : 'unavailable')
  })
}

/** The messages of records that are not past retention, in the order of the records. */
async function readLetters(core: Core, records: readonly FailedMessage[]) {
  const queues = Map.groupBy(records, ({ place }) => place.queueId)
  const messages = new Map<string, BatchMessage>()
  for (const [queueId, all] of queues) {
    const offsets = all.map(({ place }) => place.offset)
    for (const { offset, message } of await readMessagesAt(core, queueId, offsets)) {
      messages.set(`${queueId}/${offset}`, message)
    }
  }
  return records.flatMap(record => {
    const message = messages.get(`${record.place.queueId}/${record.place.offset}`)
    return message ? [{ record, message }] : []
  })
}

function toResent(record: FailedMessage, message: BatchMessage, nowMs: number): InternalMessage {
  const { retryCount: _before, ...kept } = message
  return { ...kept, failed: trailOfResent(record, nowMs) }
}

/** Undefined: the store was not up to it. */
export async function unlessAway<T>(act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof StoreError) return undefined
    throw error
  }
}
