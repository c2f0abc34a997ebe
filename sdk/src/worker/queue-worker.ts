import type { Clock } from '../../../core/protocol/clock.ts'
import type { CommitEntry, CommitResult } from '../../../core/protocol/commit.ts'
import type { FailuresRequest, FailuresResponse } from '../../../core/protocol/failures.ts'
import type { AssignedQueue } from '../../../core/protocol/membership.ts'
import type { PullResponse } from '../../../core/protocol/pull.ts'
import type { FinishOutcome } from '../committer.ts'
import { containListeners } from '../consumer-listeners.ts'
import { type ResolvedConsumerOptions, unbounded } from '../consumer-options.ts'
import { PmqClientError } from '../errors.ts'
import type { EventListener } from '../events.ts'
import type { MessageHandler } from '../message.ts'
import { endsWithin } from '../within.ts'
import { createAppendTimes } from './append-times.ts'
import { createBuffer } from './buffer.ts'
import { createDispatch, type FailedCall, type PostponedCall } from './dispatch.ts'
import { sendFailures } from './fail-sender.ts'
import { createFailureDesk } from './failures.ts'
import { createGauge } from './gauge.ts'
import { createHandOuts } from './hand-outs.ts'
import { createIntake } from './intake.ts'
import { createManualCommits } from './manual-commits.ts'
import { createOffsetTracker, type Span } from './offset-tracker.ts'
import { createPull } from './pull.ts'
import { pullingStatus, type QueueStatus, toWallMs } from './queue-status.ts'
import { createTrace } from './trace.ts'

/** What a queue's worker is made of. */
export type QueueWorkerDeps = {
  handler: MessageHandler
  /** Asks for what is behind `position`; rejects if there is no good answer. */
  ask(queue: AssignedQueue, position: number, signal: AbortSignal): Promise<PullResponse>
  /** Sends failures to their fail topic; rejects if there is no good answer. */
  sendFailures(request: FailuresRequest, signal: AbortSignal): Promise<FailuresResponse>
  /** There is more to commit than before. */
  onProgress(worker: QueueWorker): void
  /** A request was refused since the queue is not this worker's any more. */
  onRefused(worker: QueueWorker, result: CommitResult): void
  /**
   * There is nothing to do for now: the last pull brought nothing new, or there is no room for more, nothing is in work,
   * and what waits is not due. May be told again and again.
   */
  onQuiet?(worker: QueueWorker): void
  /** Whether the application has paused this queue. */
  isPaused(queue: AssignedQueue): boolean
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

/**
 * Joins pull → buffer → intake → dispatch → offset tracker, which know nothing of each other. States: `running` ⇄ `paused`
 * (the stop flag, or the application), both → `leaving` (drain) → `ended`, and any → `ended` (drop). Nothing leads out of
 * `ended`.
 */
export function createQueueWorker(deps: QueueWorkerDeps, assigned: AssignedQueue): QueueWorker {
  const { clock, random, emit, options } = deps
  const { maxBufferedMessages: maxMessages, maxBufferedBytes: maxBytes } = options
  const { topicName, queueId, queueOffsetId, offsetVersion, consumerGroupName: groupName } = assigned
  const name = { groupName, topicName, queueId }
  const isManual = options.commit === 'manual'
  let queue = assigned
  let state: QueueStatus['state'] | 'ended' = 'running'
  let committed = assigned.offset
  let draining: Promise<CommitEntry | undefined> | undefined
  let cutShort: () => void = () => undefined
  const ending = new AbortController()

  const listeners = containListeners(options.listeners, name, emit)
  const trace = createTrace(name, emit)
  const tracker = createOffsetTracker(assigned.offset)
  const gauge = createGauge({ maxMessages, maxBytes })
  const buffer = createBuffer({ topicName, queueId, gauge })
  const appendTimes = createAppendTimes(clock)
  const handOuts = createHandOuts()
  const intake = createIntake(
    {
      buffer,
      gauge,
      tracker,
      handOuts,
      clock,
      filter: listeners.filter,
      isKeyed: deps.isKeyed,
      isManual,
      // What is done behind an unfinished call would be repeated after a crash, so it is bounded like the buffer.
      maxMessages,
      maxBytes,
      maxCallBytes: options.maxCallBytes < unbounded ? options.maxCallBytes : undefined,
      onTaken: () => pull.roomChanged(),
      onProgress: () => deps.onProgress(worker),
      onReady: () => dispatch.pumpSoon(),
    },
    assigned,
  )
  const desk = createFailureDesk({
    queue: () => queue,
    send: failures =>
      sendFailures(
        {
          send: deps.sendFailures,
          newPublishId: deps.newPublishId,
          onFailed: (error, retryInMs) =>
            emit({ type: 'request_failed', operation: 'publishAndUpdateResultFailMsg', ...name, error, retryInMs }),
          clock,
          random,
        },
        failures,
        ending.signal,
      ),
    onFenced: refuse,
    emit,
  })
  const manual = createManualCommits({
    handOuts,
    recorded: () => committed,
    hasFailTopic: () => Boolean(queue.failTopicName),
    bringAway: messages => desk.bringAway(messages, 1, []),
    finish(messages) {
      let hasMoved = false
      for (const { offset } of messages) {
        const span = handOuts.remove(offset)
        if (span && tracker.finished(span, 1)) hasMoved = true
      }
      if (hasMoved) deps.onProgress(worker)
      dispatch.pump()
    },
  })
  const dispatch = createDispatch<Span | undefined>(
    {
      queue: { ...name, commit: commitByHand },
      handler: deps.handler,
      take: intake.take,
      finished: intake.finished,
      stillOpen: messages => (isManual ? messages.filter(manual.isOpen) : messages),
      leaving: (failed, failures) => (isManual ? [] : desk.leaving(failed, failures)),
      bringAway: desk.bringAway,
      onFailed: tellFailed,
      onPostponed: tellPostponed,
      onIdle: noteRest,
      onSlow: (messages, runningMs) =>
        emit({ type: 'handler_slow', ...name, offsets: messages.map(({ offset }) => offset), runningMs }),
      preHandle: listeners.preHandle,
      postHandle: listeners.postHandle,
      trace,
      warnTimeoutMs: options.warnTimeoutMs,
      clock,
      random,
    },
    assigned,
  )
  const pull = createPull(
    {
      ask,
      add(batch, firstIndex, serviceNowMs) {
        buffer.add(batch, firstIndex, appendTimes.of(batch.time, serviceNowMs))
        if (trace.isOn) trace.pulled(batch, firstIndex)
        dispatch.pump()
      },
      wantsMore: () => gauge.wantsMore,
      onRest: noteRest,
      onSkipped: (firstOffset, count) => emit({ type: 'skipped', ...name, firstOffset, count }),
      onFailed: (error, retryInMs) =>
        emit({ type: 'request_failed', operation: 'pullData', ...name, error, retryInMs }),
      clock,
      random,
      pullDeltaTimeMs: options.pullDeltaTimeMs,
    },
    assigned.offset,
    assigned.maxPullTime * 1000,
  )

  async function ask(position: number, signal: AbortSignal): Promise<PullResponse> {
    const answer = await deps.ask(queue, position, signal)
    if (answer.fenced) refuse()
    return answer
  }

  function commitByHand(...commit: Parameters<typeof manual.commit>): Promise<void> {
    if (isManual) return manual.commit(...commit)
    const text = "The consumer commits by itself; commit is for one with the option commit: 'manual'."
    return Promise.reject(new PmqClientError('invalid_commit', text))
  }

  function noteRest() {
    const hasPulled = pull.isAtEnd || !gauge.wantsMore
    if (state === 'running' && hasPulled && dispatch.isIdle && handOuts.size === 0) deps.onQuiet?.(worker)
  }

  function tellFailed({ messages, failed, leaving, failures, error, retryInMs }: FailedCall) {
    emit({
      type: 'handler_failed',
      ...name,
      firstOffset: messages[0]?.offset ?? 0,
      lastOffset: messages.at(-1)?.offset ?? 0,
      failedOffsets: failed.map(({ offset }) => offset),
      failures,
      error,
      ...(retryInMs !== undefined && { retryInMs }),
      ...(leaving.length > 0 && queue.failTopicName && { failTopicName: queue.failTopicName }),
    })
  }

  function tellPostponed({ messages, error, retryInMs }: PostponedCall) {
    emit({
      type: 'handler_postponed',
      ...name,
      firstOffset: messages[0]?.offset ?? 0,
      lastOffset: messages.at(-1)?.offset ?? 0,
      error,
      ...(retryInMs !== undefined && { retryInMs }),
    })
  }

  function refuse() {
    if (!isEnded()) deps.onRefused(worker, { queueOffsetId, outcome: 'fenced' })
  }

  function pausedBy(): QueueStatus['pausedBy'] {
    return [
      ...(queue.stopFlag === 1 ? (['stop_flag'] as const) : []),
      ...(deps.isPaused(queue) ? (['consumer'] as const) : []),
    ]
  }

  async function stop(): Promise<void> {
    pull.stop()
    intake.finishUp()
    await dispatch.stop()
  }

  /** What was handed out for the application to commit is in work until it does. */
  async function finishWork(): Promise<void> {
    await stop()
    if (isManual) await manual.settled()
  }

  async function finish(): Promise<CommitEntry | undefined> {
    state = 'leaving'
    const timeUp = new Promise<void>(resolve => {
      cutShort = resolve
    })
    await Promise.race([finishWork(), timeUp])
    if (isEnded()) return undefined
    end()
    return commitEntry()
  }

  function end() {
    state = 'ended'
    pull.stop()
    dispatch.abandon(new PmqClientError('aborted', 'The queue was given up; the result of the call does not count.'))
    ending.abort()
    intake.close()
    buffer.clear()
  }

  function isEnded(): boolean {
    return state === 'ended'
  }

  function commitEntry(): CommitEntry {
    return { queueOffsetId, offsetVersion, offset: tracker.committable, consumerGroupName: groupName, topicName }
  }

  function record(offset: number) {
    if (offset <= committed) return
    committed = offset
    if (trace.isOn) trace.committed(offset)
    manual.recordedMore()
  }

  const worker: QueueWorker = {
    get queue() {
      return queue
    },
    update(changed) {
      queue = changed
      if (state !== 'running' && state !== 'paused') return
      const isPaused = pausedBy().length > 0
      state = isPaused ? 'paused' : 'running'
      trace.isOn = changed.traceFlag === 1
      intake.update(changed)
      pull.setMaxPause(changed.maxPullTime * 1000)
      pull.setPaused(isPaused)
      dispatch.setPaused(isPaused)
      dispatch.update(changed)
    },
    hint: pull.hint,
    async drain(timeoutMs) {
      if (state !== 'ended') draining ??= finish()
      if (draining && !(await endsWithin(clock, timeoutMs, draining))) cutShort()
      return draining
    },
    settleFinal(sent, outcome) {
      if (outcome === 'accepted') record(sent.offset)
      const code = outcome === 'fenced' || outcome === 'removed' ? 'fenced' : 'closed'
      manual.close(new PmqClientError(code, 'The queue was given up before the service has recorded this.'))
    },
    drop() {
      end()
      manual.close(new PmqClientError('fenced', "The queue is not this consumer's any more."))
      cutShort()
    },
    ended: stop,
    nextCommit() {
      return state !== 'ended' && tracker.committable > committed ? commitEntry() : undefined
    },
    settleCommit(sent, result) {
      if (result.outcome === 'advanced' || result.outcome === 'unchanged') record(sent.offset)
      else if (state !== 'ended') deps.onRefused(worker, result)
    },
    status: () => ({
      topicName,
      queueId,
      state: state === 'ended' ? 'leaving' : state,
      pausedBy: pausedBy(),
      ...pullingStatus(pull.activity, state === 'paused', clock),
      lastPullAtMs: pull.lastPullAtMs,
      failedPulls: pull.failures,
      position: pull.position,
      committed,
      uncommitted: tracker.committable + tracker.uncommittable - committed,
      buffered: gauge.messages,
      delayed: intake.delayed,
      nextDueAtMs: wallMs(intake.nextDueAtMs),
      behindKeys: intake.behindKeys,
      running: dispatch.running,
      failing: dispatch.failing,
      isHeld: dispatch.isHeld,
      lastHandledAtMs: wallMs(dispatch.lastHandledAtMs),
    }),
  }

  function wallMs(monotonicMs: number | undefined): number | undefined {
    return monotonicMs === undefined ? undefined : toWallMs(monotonicMs, clock)
  }

  worker.update(assigned)
  void pull.run()
  return worker
}
