import { type Backoff, fullJitterMs } from '../../core/protocol/backoff.ts'
import type { Clock } from '../../core/protocol/clock.ts'
import type { CommitEntry, CommitResponse, CommitResult } from '../../core/protocol/commit.ts'
import { asClientError, type PmqClientError } from './errors.ts'
import { createWakeup } from './wakeup.ts'

/** A queue as the committer sees it. */
export type CommitSource = {
  /** What is to be committed next, or undefined if nothing has changed. */
  nextCommit(): CommitEntry | undefined
  settleCommit(sent: CommitEntry, result: CommitResult): void
}

/** What a committer is made of. */
export type CommitterDeps = {
  /** Sends a commit; with `givesUp` it hands the queues over. Rejects if there is no good answer. */
  send(entries: CommitEntry[], givesUp: boolean, signal: AbortSignal): Promise<CommitResponse>
  onFailed(error: PmqClientError, retryInMs: number | undefined): void
  clock: Clock
  random: () => number
  asyncCommitIntervalMs: number
  syncCommit: boolean
}

/** Commits for all queues of a consumer. */
export type Committer = {
  /** Notes that a source has something to commit; with `isUrgent` it does not wait for what else may come. */
  changed(source: CommitSource, isUrgent?: boolean): void
  /** Sends the last commit of a queue that is stopped; with `givesUp` it also hands the queue over. Never rejects. */
  finish(entry: CommitEntry, givesUp: boolean): Promise<FinishOutcome>
  /** The consumer stops: last commits have less time from now on. */
  hurry(): void
  /** Gives up what is under way and what is not sent. */
  close(): void
}

const retryBackoff: Backoff = { baseMs: 200, maxMs: 5_000 }
/**
 * How long a last commit is tried: unanswered, it costs redelivery of what was not committed. Well below the time after
 * which the service gives the queue to its next owner anyway; and nobody waits for so long with a stop.
 */
const finishPatienceMs = 30_000
const hurriedPatienceMs = 5_000

/**
 * `fenced`: the queue had another owner already, and the commit did not count. `removed`: it is not the group's any more.
 * `unanswered`: what became of it is not known.
 */
export type FinishOutcome = 'accepted' | 'fenced' | 'removed' | 'unanswered'

type Last = { entry: CommitEntry; givesUp: boolean; done: (outcome: FinishOutcome) => void }

/**
 * One request at a time carries the newest offsets of all queues that have moved; none is sent while nothing moves.
 * A request that fails is not repeated as it was: its sources are asked again, so what is sent is always the newest.
 */
export function createCommitter(deps: CommitterDeps): Committer {
  const { clock, random } = deps
  const wakeup = createWakeup(clock)
  const closing = new AbortController()
  const changed = new Set<CommitSource>()
  let lasts: Last[] = []
  let isRunning = false
  let isUrgent = false
  let isGathering = false
  let hurriedAtMs = Number.POSITIVE_INFINITY

  async function run() {
    let failures = 0
    while (changed.size > 0 && !closing.signal.aborted) {
      if (failures === 0) await gather()
      isUrgent = false
      const sent = new Map<number, { source: CommitSource; entry: CommitEntry }>()
      for (const source of changed) {
        const entry = source.nextCommit()
        if (entry) sent.set(entry.queueOffsetId, { source, entry })
      }
      changed.clear()
      if (sent.size === 0 || closing.signal.aborted) continue
      try {
        const entries = [...sent.values()].map(({ entry }) => entry)
        const answer = await deps.send(entries, false, closing.signal)
        failures = 0
        settle(sent, answer)
      } catch (thrown) {
        if (closing.signal.aborted) return
        for (const { source } of sent.values()) changed.add(source)
        const error = asClientError(thrown)
        const retryInMs = Math.max(fullJitterMs(retryBackoff, failures++, random), error.retryAfterMs ?? 0)
        deps.onFailed(error, retryInMs)
        await wakeup.wait(retryInMs)
      }
    }
    isRunning = false
  }

  /** Even a commit that is to go at once waits for the end of the turn: many calls end in one. */
  async function gather() {
    if (!deps.syncCommit && !isUrgent) {
      isGathering = true
      await wakeup.wait(deps.asyncCommitIntervalMs)
      isGathering = false
    }
    if (deps.syncCommit || isUrgent) await new Promise(resolve => setImmediate(resolve))
  }

  function settle(sent: Map<number, { source: CommitSource; entry: CommitEntry }>, answer: CommitResponse) {
    for (const result of answer.results ?? []) {
      const found = sent.get(result.queueOffsetId)
      sent.delete(result.queueOffsetId)
      found?.source.settleCommit(found.entry, result)
    }
    // A service that gives no results has taken what it was sent, as PMQ does.
    for (const { source, entry } of sent.values()) {
      source.settleCommit(entry, { queueOffsetId: entry.queueOffsetId, outcome: 'advanced' })
    }
  }

  function sendLasts() {
    const gathered = lasts
    lasts = []
    for (const givesUp of [true, false]) {
      const batch = gathered.filter(last => last.givesUp === givesUp)
      if (batch.length > 0) void sendLast(batch, givesUp)
    }
  }

  async function sendLast(batch: Last[], givesUp: boolean) {
    const entries = batch.map(({ entry }) => entry)
    const startedAtMs = clock.monotonic()
    const giveUpAtMs = () =>
      Math.min(startedAtMs + finishPatienceMs, Math.max(startedAtMs, hurriedAtMs) + hurriedPatienceMs)
    let answer: CommitResponse | undefined
    for (let retry = 0; !answer && !closing.signal.aborted; retry++) {
      try {
        answer = await deps.send(entries, givesUp, closing.signal)
      } catch (thrown) {
        const error = asClientError(thrown)
        const retryInMs = Math.max(fullJitterMs(retryBackoff, retry, random), error.retryAfterMs ?? 0)
        const isLast = closing.signal.aborted || clock.monotonic() + retryInMs >= giveUpAtMs()
        deps.onFailed(error, isLast ? undefined : retryInMs)
        if (isLast) break
        await clock.sleep(retryInMs, closing.signal)
      }
    }
    for (const { entry, done } of batch) done(outcomeOf(entry, answer))
  }

  return {
    changed(source, urgent = false) {
      changed.add(source)
      if (urgent) {
        isUrgent = true
        if (isGathering) wakeup.wake()
      }
      if (isRunning || closing.signal.aborted) return
      isRunning = true
      void run()
    },
    finish(entry, givesUp) {
      return new Promise(done => {
        lasts.push({ entry, givesUp, done })
        if (lasts.length === 1) setImmediate(sendLasts)
      })
    },
    hurry() {
      hurriedAtMs = Math.min(hurriedAtMs, clock.monotonic())
    },
    close() {
      closing.abort()
      wakeup.wake()
    },
  }
}

function outcomeOf({ queueOffsetId }: CommitEntry, answer: CommitResponse | undefined): FinishOutcome {
  if (!answer) return 'unanswered'
  const outcome = answer.results?.find(result => result.queueOffsetId === queueOffsetId)?.outcome
  if (outcome === 'unknown_queue') return 'removed'
  return outcome === 'fenced' ? 'fenced' : 'accepted'
}
