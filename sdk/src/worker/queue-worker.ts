import type { CommitEntry } from '../../../core/protocol/commit.ts'
import type { AssignedQueue } from '../../../core/protocol/membership.ts'
import type { PullResponse } from '../../../core/protocol/pull.ts'
import { containListeners } from '../consumer-listeners.ts'
import { unbounded } from '../consumer-options.ts'
import { PmqClientError } from '../errors.ts'
import type { Message } from '../message.ts'
import { endsWithin } from '../within.ts'
import { createAppendTimes } from './append-times.ts'
import { createBuffer } from './buffer.ts'
import { causeOf } from './call-outcome.ts'
import { makeCareful } from './careful-calls.ts'
import { createCaution } from './caution.ts'
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
import type { QueueWorker, QueueWorkerDeps } from './worker-types.ts'

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
  const caution = assigned.deaths === undefined ? undefined : beCareful()
  const usual = { handler: deps.handler, preHandle: listeners.preHandle, postHandle: listeners.postHandle }
  const calls = caution ? makeCareful(caution, usual, setAside) : usual
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
      onProgress: () => deps.onProgress(worker, caution?.isUrgent),
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
    confirms: desk.confirms,
    bringAway: (failed, done, cause) => desk.bringAway(failed, 1, done, cause),
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
      handler: calls.handler,
      take: intake.take,
      finished: intake.finished,
      stillOpen: messages => (isManual ? messages.filter(manual.isOpen) : messages),
      leaving: (failed, failures) => (isManual ? [] : desk.leaving(failed, countFailures(failed, failures))),
      confirms: () => !isManual && desk.confirms(),
      bringAway: (leaving, failures, succeeded, cause) =>
        desk.bringAway(leaving, countFailures(leaving, failures), succeeded, cause),
      onFailed: tellFailed,
      onPostponed: tellPostponed,
      onIdle: noteRest,
      onSlow: (messages, runningMs) =>
        emit({ type: 'handler_slow', ...name, offsets: messages.map(({ offset }) => offset), runningMs }),
      get preHandle() {
        return calls.preHandle
      },
      postHandle: calls.postHandle,
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
    if (state !== 'running' || !hasPulled || !dispatch.isIdle || handOuts.size > 0) return
    caution?.atRest(intake.delayed)
    deps.onQuiet?.(worker)
  }

  function beCareful() {
    return createCaution(
      {
        turns: deps.turns,
        maxMessages,
        onNews: isUrgent => deps.onProgress(worker, isUrgent),
        onStage: applySettings,
        isAlone: () => !isManual || handOuts.size === 1,
        done: () => tracker.committable,
        recorded: () => committed,
      },
      assigned,
    )
  }

  function countFailures(messages: readonly Message[], failures: number): number {
    return failures + (caution?.earlierFailures(messages) ?? 0)
  }

  /** By hand nothing is brought away but what a commit names, and nobody will name it. */
  function setAside(messages: readonly Message[], error: PmqClientError): boolean {
    if (!isManual || !queue.failTopicName) return false
    tellFailed({ messages, failed: messages, leaving: messages, failures: 1, error, retryInMs: undefined })
    manual.giveAway(messages, causeOf({ error }))
    return true
  }

  function applySettings() {
    dispatch.update(caution?.limit(queue, dispatch.failing) ?? queue)
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
    if (retryInMs !== undefined && caution?.isOn) applySettings()
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
    caution?.close()
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
    return { ...commitEntry(), ...(caution?.isOn && { trialOffset: 0 }) }
  }

  function end() {
    state = 'ended'
    pull.stop()
    caution?.close()
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
      applySettings()
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
      if (state === 'ended' || (tracker.committable <= committed && !caution?.hasNews)) return undefined
      return { ...commitEntry(), ...caution?.entry() }
    },
    settleCommit(sent, result) {
      if (result.outcome === 'advanced' || result.outcome === 'unchanged') {
        record(sent.offset)
        caution?.settled(sent)
      } else if (state !== 'ended') deps.onRefused(worker, result)
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
      isHeld: dispatch.isHeld && !caution?.isAsking,
      isCareful: caution?.isOn ?? false,
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
