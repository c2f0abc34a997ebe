import type { Clock } from '../../../core/protocol/clock.ts'
import type { CommitEntry, CommitResult } from '../../../core/protocol/commit.ts'
import type { FailuresRequest, FailuresResponse } from '../../../core/protocol/failures.ts'
import type { AssignedQueue } from '../../../core/protocol/membership.ts'
import type { PullResponse } from '../../../core/protocol/pull.ts'
import type { FinishOutcome } from '../committer.ts'
import type { ResolvedConsumerOptions } from '../consumer-options.ts'
import type { EventListener } from '../events.ts'
import type { MessageHandler } from '../message.ts'
import type { QueueStatus } from './queue-status.ts'
import type { TrialTurns } from './trial-turns.ts'

/** What a queue's worker is made of. */
export type QueueWorkerDeps = {
  handler: MessageHandler
  /** Asks for what is behind `position`; rejects if there is no good answer. */
  ask(queue: AssignedQueue, position: number, signal: AbortSignal): Promise<PullResponse>
  /** Sends failures to their fail topic; rejects if there is no good answer. */
  sendFailures(request: FailuresRequest, signal: AbortSignal): Promise<FailuresResponse>
  /** There is more to commit than before; with `isUrgent` something waits until that is done. */
  onProgress(worker: QueueWorker, isUrgent?: boolean): void
  /** A request was refused since the queue is not this worker's any more. */
  onRefused(worker: QueueWorker, result: CommitResult): void
  /**
   * There is nothing to do for now: the last pull brought nothing new, or there is no room for more, nothing is in work,
   * and what waits is not due. May be told again and again.
   */
  onQuiet?(worker: QueueWorker): void
  /** Whether the application has paused this queue. */
  isPaused(queue: AssignedQueue): boolean
  /** Shared by the queues of a consumer. */
  turns: TrialTurns
  isKeyed: boolean
  newPublishId(): string
  emit: EventListener
  clock: Clock
  random: () => number
  options: Pick<
    ResolvedConsumerOptions,
    | 'maxBufferedMessages'
    | 'maxBufferedBytes'
    | 'maxCallBytes'
    | 'pullDeltaTimeMs'
    | 'commit'
    | 'listeners'
    | 'warnTimeoutMs'
  >
}

/** Works through one queue for as long as it is assigned to this consumer under one offsetVersion. */
export type QueueWorker = {
  readonly queue: AssignedQueue
  /** Applies changed settings, and whether the application has paused the queue; the offsetVersion must be the same. */
  update(queue: AssignedQueue): void
  /** There may be messages: an empty queue is asked at once. */
  hint(): void
  /**
   * Stops pulling, lets running calls end for up to `timeoutMs`, aborts the rest. Resolves with the final commit, or
   * with undefined if the worker was dropped meanwhile. A second call may shorten the time of the first.
   */
  drain(timeoutMs: number): Promise<CommitEntry | undefined>
  /** Takes note of what became of the final commit. */
  settleFinal(sent: CommitEntry, outcome: FinishOutcome): void
  /** Ends at once: nothing more is handed out or committed. */
  drop(): void
  /** Stops, and resolves when no handler call runs any more, however long that takes. */
  ended(): Promise<void>
  /** What is to be committed next, or undefined if nothing has changed. */
  nextCommit(): CommitEntry | undefined
  /** Takes note of what became of a commit. */
  settleCommit(sent: CommitEntry, result: CommitResult): void
  status(): QueueStatus
}
