import type { Core } from '../core.ts'
import { forEachOf } from '../for-each-of.ts'
import { readMessagesAt, type StoredMessage } from '../log/read-at.ts'
import type { Topic } from '../model.ts'
import type { FailureCause } from '../protocol/failures.ts'
import { limits } from '../protocol/limits.ts'
import type { PublishRun } from '../protocol/publish.ts'
import { StoreError } from '../store.ts'
import type { FailedMessage, Place } from './records.ts'
import { recordOf } from './trail.ts'

/** Whose failures a fail topic takes. */
type FailOf = NonNullable<Topic['failOf']>

/**
 * Records failures that lie in a fail topic: a write for each. What they are is read from the log, where they were put a
 * moment ago, so that a repeated call makes the same records. True: all are recorded.
 */
export async function recordFailures(
  core: Core,
  failOf: FailOf,
  places: readonly Place[],
  cause: FailureCause | null | undefined,
): Promise<boolean> {
  const told = describe(cause)
  let deadLetters = 0
  const isDone = await attempt(async () => {
    const retryCount = await findRetryCount(core, failOf)
    await forEachOf(await readPlaces(core, places), async stored => {
      const isLast = retryCount === undefined || (stored.message.retryCount ?? 0) > retryCount
      const record = recordOf(stored, isLast ? 'exhausted' : 'retrying')
      const outcome = record && (await core.store.recordFailed({ ...record, ...told }))
      if (isLast && outcome === 'recorded') deadLetters++
    })
  })
  // After a failure in the middle one may be counted again; none is forgotten.
  if (deadLetters > 0) core.onDeadLetters?.({ ...failOf, count: deadLetters })
  return isDone
}

/** The places of what a publish has stored. */
export const placesOf = ({ queueId, offset, count }: PublishRun) =>
  queueId === undefined || offset === undefined
    ? []
    : Array.from({ length: count }, (_, i) => ({ queueId, offset: offset + i }))

/** Records that messages of a fail queue were handled after all: a read for each of their batches, and a write for each. */
export async function recordSuccesses(core: Core, queueId: number, offsets: readonly number[]): Promise<boolean> {
  const settledAtMs = core.clock.now()
  return attempt(async () => {
    await forEachOf(await readMessagesAt(core, queueId, offsets), async stored => {
      const record = recordOf(stored, 'succeeded')
      if (record) await core.store.recordFailed({ ...record, settledAtMs })
    })
  })
}

/**
 * How often the group has a failure handled again; undefined: it does not subscribe any more, and handles nothing. What is
 * remembered may be older than the subscription.
 */
async function findRetryCount(core: Core, { groupName, topicName }: FailOf): Promise<number | undefined> {
  const find = async () => {
    const subscriptions = await core.subscriptions.get(groupName)
    return subscriptions?.find(subscription => subscription.topicName === topicName)?.retryCount
  }
  const known = await find()
  if (known !== undefined) return known
  core.subscriptions.forget(groupName)
  return find()
}

async function readPlaces(core: Core, places: readonly Place[]): Promise<StoredMessage[]> {
  const queues = Map.groupBy(places, ({ queueId }) => queueId)
  const offsetsOf = (all: readonly Place[]) => all.map(({ offset }) => offset)
  return (
    await Promise.all(Array.from(queues, ([queueId, all]) => readMessagesAt(core, queueId, offsetsOf(all))))
  ).flat()
}

/** Where the store fails, the caller says so, and its client comes again; anything else is a defect. */
async function attempt(act: () => Promise<void>): Promise<boolean> {
  try {
    await act()
    return true
  } catch (error) {
    if (error instanceof StoreError) return false
    throw error
  }
}

/** A store need not take what is no Unicode: half a surrogate pair is replaced. */
const cut = (text: string, length: number) => text.slice(0, length).toWellFormed()

function describe(cause: FailureCause | null | undefined): Pick<FailedMessage, 'errorKind' | 'error'> {
  const { kind, text } = cause ?? {}
  return {
    ...(kind && { errorKind: cut(kind, limits.maxErrorKindLength) }),
    ...(text && { error: cut(text, limits.maxErrorLength) }),
  }
}
