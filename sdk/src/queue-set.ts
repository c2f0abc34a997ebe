import { setMaxListeners } from 'node:events'
import type { Clock } from '../../core/protocol/clock.ts'
import type { CommitEntry, CommitResult } from '../../core/protocol/commit.ts'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import type { FinishOutcome } from './committer.ts'
import type { EventListener } from './events.ts'
import { endsWithin } from './within.ts'
import type { QueueStatus } from './worker/queue-status.ts'
import type { QueueWorker } from './worker/worker-types.ts'

/** What a queue set is made of. */
export type QueueSetDeps = {
  /** Starts a worker; undefined if there is no handler for the queue. */
  startWorker(queue: AssignedQueue): QueueWorker | undefined
  /** Sends the last commit of a queue; with `givesUp` it also hands the queue over. Never rejects. */
  finish(entry: CommitEntry, givesUp: boolean): Promise<FinishOutcome>
  emit: EventListener
  clock: Clock
  /** How long running calls may take to end when their queue goes to another consumer. */
  revokeTimeoutMs: number
}

/** The queues that a consumer works on. */
export type QueueSet = {
  /**
   * Makes the set equal to an assignment. Resolves when everything that the assignment takes away has been given up:
   * true if there was any. Never rejects.
   */
  apply(assigned: AssignedQueue[]): Promise<boolean>
  /** A commit of this worker was refused. */
  refuse(worker: QueueWorker, result: CommitResult): void
  /**
   * Finishes all queues in order; running calls have `timeoutMs` to end. Gives them up, unless `keeps`, asked at the end
   * of each, says that they stay. The set is not used again.
   */
  drainAll(timeoutMs: number, keeps: () => boolean): Promise<void>
  /** The queues that are worked on; undefined while some are on their way out. */
  working(): AssignedQueue[] | undefined
  /** Ends all work at once; nothing more is committed. */
  dropAll(): void
  /** There may be messages in these queues. Those that are not this consumer's are passed over. */
  hint(queueIds: readonly number[]): void
  /** The application has paused or resumed queues. */
  pausesChanged(): void
  status(): QueueStatus[]
}

/**
 * A queue is in one of these states. `working`: its worker runs. Taken away → `leaving`: running calls end, the final
 * commit is sent. Fenced, or its offset reset → `ending`: nothing is committed, running calls are waited for. Behind
 * both the queue is gone, or begins again with what was assigned meanwhile (`next`).
 */
type Entry = {
  worker: QueueWorker
  state: 'working' | 'leaving' | 'ending'
  next: AssignedQueue | undefined
  gone: Promise<void>
}

/** Makes a set without queues. */
export function createQueueSet(deps: QueueSetDeps): QueueSet {
  const { emit, clock } = deps
  const entries = new Map<number, Entry>()
  const closing = new AbortController()
  setMaxListeners(0, closing.signal)
  /** Per queue, the lowest offsetVersion that can be ours: older ones are known to be over, whoever still tells of them. */
  const lowestVersions = new Map<number, number>()

  function begin(queue: AssignedQueue) {
    if (queue.offsetVersion < (lowestVersions.get(queue.queueOffsetId) ?? 0)) return
    const worker = deps.startWorker(queue)
    if (!worker) return emit({ type: 'no_handler', ...nameOf(queue) })
    entries.set(queue.queueOffsetId, { worker, state: 'working', next: undefined, gone: Promise.resolve() })
    const { offset, offsetVersion, deaths, suspectOffset } = queue
    emit({ type: 'assigned', ...nameOf(queue), offset, offsetVersion })
    if (deaths) emit({ type: 'careful', ...nameOf(queue), deaths, ...(suspectOffset && { suspectOffset }) })
  }

  /** The old work has ended; what was assigned meanwhile may begin. */
  function goOn(entry: Entry) {
    const { queueOffsetId } = entry.worker.queue
    if (entries.get(queueOffsetId) !== entry) return
    entries.delete(queueOffsetId)
    if (entry.next) begin(entry.next)
  }

  function leave(entry: Entry, timeoutMs: number, keeps: () => boolean) {
    entry.state = 'leaving'
    entry.next = undefined
    emit({ type: 'revoking', ...nameOf(entry.worker.queue), timeoutMs })
    entry.gone = finish(entry, timeoutMs, keeps)
  }

  async function finish(entry: Entry, timeoutMs: number, keeps: () => boolean) {
    const final = await entry.worker.drain(timeoutMs)
    if (!final) return
    const { queueOffsetId, offset, offsetVersion } = final
    const isKept = keeps()
    const isNews = offset > entry.worker.status().committed || final.trialOffset != null
    const outcome = isKept && !isNews ? 'accepted' : await deps.finish(final, !isKept)
    entry.worker.settleFinal(final, outcome)
    // Unanswered, the queue may still be ours under this version.
    if (outcome !== 'unanswered' && !isKept) raiseLowest(queueOffsetId, offsetVersion + 1)
    const isRefused = outcome === 'fenced' || outcome === 'removed'
    const type = isRefused ? outcome : isKept ? 'kept' : 'revoked'
    emit({ type, ...nameOf(entry.worker.queue), offset, offsetVersion })
    goOn(entry)
  }

  function abandon(entry: Entry, next: AssignedQueue | undefined) {
    entry.state = 'ending'
    entry.next = next
    entry.worker.drop()
    entry.gone = waitForCalls(entry)
  }

  /** Old calls should not run beside new ones of the same queue; but one that never ends must not block it. */
  async function waitForCalls(entry: Entry) {
    await endsWithin(clock, deps.revokeTimeoutMs, entry.worker.ended(), closing.signal)
    goOn(entry)
  }

  function raiseLowest(queueOffsetId: number, offsetVersion: number) {
    lowestVersions.set(queueOffsetId, Math.max(offsetVersion, lowestVersions.get(queueOffsetId) ?? 0))
  }

  function accept(queue: AssignedQueue) {
    const entry = entries.get(queue.queueOffsetId)
    if (!entry) return begin(queue)
    const current = entry.worker.queue
    if (entry.state !== 'working') entry.next = queue
    else if (queue.offsetVersion === current.offsetVersion) entry.worker.update(queue)
    else if (queue.offsetVersion > current.offsetVersion) {
      emit({ type: 'reset', ...nameOf(queue), offset: queue.offset, offsetVersion: queue.offsetVersion })
      abandon(entry, queue)
    }
  }

  return {
    async apply(assigned) {
      const kept = new Set(assigned.map(({ queueOffsetId }) => queueOffsetId))
      const going: Promise<void>[] = []
      for (const [queueOffsetId, entry] of entries) {
        if (kept.has(queueOffsetId)) continue
        if (entry.state === 'working') leave(entry, deps.revokeTimeoutMs, never)
        entry.next = undefined
        going.push(entry.gone)
      }
      for (const queue of assigned) accept(queue)
      await Promise.all(going)
      return going.length > 0
    },
    refuse(worker, { outcome, offsetVersion }) {
      const { queue } = worker
      raiseLowest(queue.queueOffsetId, offsetVersion ?? queue.offsetVersion + 1)
      const entry = entries.get(queue.queueOffsetId)
      if (entry?.worker !== worker || entry.state === 'ending') return
      const { committed: offset } = worker.status()
      abandon(entry, entry.next)
      const type = outcome === 'unknown_queue' ? 'removed' : 'fenced'
      emit({ type, ...nameOf(queue), offset, offsetVersion: queue.offsetVersion })
    },
    async drainAll(timeoutMs, keeps) {
      const leaving: Promise<void>[] = []
      const ending: Promise<void>[] = []
      for (const entry of entries.values()) {
        if (entry.state === 'working') leave(entry, timeoutMs, keeps)
        // It was given more time, for a queue that changes hands.
        else if (entry.state === 'leaving') void entry.worker.drain(timeoutMs)
        entry.next = undefined
        ;(entry.state === 'leaving' ? leaving : ending).push(entry.gone)
      }
      await Promise.all([...leaving, endsWithin(clock, timeoutMs, Promise.all(ending))])
      closing.abort()
    },
    dropAll() {
      for (const entry of entries.values()) if (entry.state !== 'ending') abandon(entry, undefined)
    },
    hint(queueIds) {
      const hinted = new Set(queueIds)
      for (const { worker } of entries.values()) if (hinted.has(worker.queue.queueId)) worker.hint()
    },
    pausesChanged() {
      for (const { worker } of entries.values()) worker.update(worker.queue)
    },
    working() {
      const all = [...entries.values()]
      return all.every(({ state }) => state === 'working') ? all.map(({ worker }) => worker.queue) : undefined
    },
    status: () => [...entries.values()].map(entry => entry.worker.status()),
  }
}

const never = () => false

function nameOf(queue: AssignedQueue): { groupName: string; topicName: string; queueId: number } {
  return { groupName: queue.consumerGroupName, topicName: queue.topicName, queueId: queue.queueId }
}
