import type { Clock } from '../../../core/protocol/clock.ts'
import type { CommitEntry, CommitResult } from '../../../core/protocol/commit.ts'
import type { AssignedQueue } from '../../../core/protocol/membership.ts'
import type { PullResponse } from '../../../core/protocol/pull.ts'
import type { EventListener } from '../events.ts'
import type { MessageHandler } from '../message.ts'
import { endsWithin } from '../within.ts'
import { createBuffer } from './buffer.ts'
import { createDispatch } from './dispatch.ts'
import { createOffsetTracker } from './offset-tracker.ts'
import { createPull } from './pull.ts'

/** What a queue's worker is made of. */
export type QueueWorkerDeps = {
  handler: MessageHandler
  /** Asks for what is behind `position`; rejects if there is no good answer. */
  ask(queue: AssignedQueue, position: number, signal: AbortSignal): Promise<PullResponse>
  /** There is more to commit than before. */
  onProgress(worker: QueueWorker): void
  /** A commit was refused since the queue is not this worker's any more. */
  onRefused(worker: QueueWorker, result: CommitResult): void
  emit: EventListener
  clock: Clock
  random: () => number
  options: { maxBufferedMessages: number; maxBufferedBytes: number; pullDeltaTimeMs: number }
}

/** Works through one queue for as long as it is assigned to this consumer under one offsetVersion. */
export type QueueWorker = {
  readonly queue: AssignedQueue
  /** Applies changed settings; the offsetVersion must be the same. */
  update(queue: AssignedQueue): void
  /**
   * Stops pulling, lets running calls end for up to `timeoutMs`, aborts the rest. Resolves with the final commit, or
   * with undefined if the worker was dropped meanwhile. A second call may shorten the time of the first.
   */
  drain(timeoutMs: number): Promise<CommitEntry | undefined>
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

/** How far a consumer is with one of its queues. */
export type QueueStatus = {
  topicName: string
  queueId: number
  /** `paused`: by the group's stop flag. `leaving`: what runs is being finished, for another consumer or a stop. */
  state: 'running' | 'paused' | 'leaving'
  /** The last offset that was pulled. */
  position: number
  /** The last offset that the service has recorded as done. */
  committed: number
  /** Messages that wait for a handler. */
  buffered: number
  /** Handler calls that run or wait to be repeated. */
  running: number
  /** When a pull was last answered, milliseconds since 1970. */
  lastPullAtMs: number | undefined
  /** How many pulls in a row have failed; 0 if the last one was answered. */
  failedPulls: number
}

/**
 * Joins pull → buffer → dispatch → offset tracker, which know nothing of each other. States: `running` ⇄ `paused` (the
 * stop flag), both → `leaving` (drain) → `ended`, and any → `ended` (drop). Nothing leads out of `ended`.
 */
export function createQueueWorker(deps: QueueWorkerDeps, assigned: AssignedQueue): QueueWorker {
  const { clock, random, emit, options } = deps
  const { topicName, queueId, queueOffsetId, offsetVersion, consumerGroupName: groupName } = assigned
  const name = { groupName, topicName, queueId }
  let queue = assigned
  let state: QueueStatus['state'] | 'ended' = 'running'
  let committed = assigned.offset
  let draining: Promise<CommitEntry | undefined> | undefined
  let cutShort: () => void = () => undefined

  const tracker = createOffsetTracker(assigned.offset)
  const buffer = createBuffer({
    topicName,
    queueId,
    maxMessages: options.maxBufferedMessages,
    maxBytes: options.maxBufferedBytes,
  })
  const dispatch = createDispatch(
    {
      queue: name,
      handler: deps.handler,
      take(max) {
        // What is done behind an unfinished call would be repeated after a crash, so it is bounded like the buffer.
        if (tracker.uncommittable >= options.maxBufferedMessages) return []
        const messages = buffer.take(max)
        pull.roomChanged()
        return messages
      },
      started: tracker.started,
      finished(span) {
        if (tracker.finished(span)) deps.onProgress(worker)
      },
      onFailed({ messages, failures, error, retryInMs }) {
        const firstOffset = messages[0]?.offset ?? 0
        const lastOffset = messages.at(-1)?.offset ?? 0
        const retry = retryInMs === undefined ? {} : { retryInMs }
        emit({ type: 'handler_failed', ...name, firstOffset, lastOffset, failures, error, ...retry })
      },
      clock,
      random,
    },
    assigned,
  )
  const pull = createPull(
    {
      ask: (position, signal) => deps.ask(queue, position, signal),
      add(batch, firstIndex) {
        buffer.add(batch, firstIndex)
        dispatch.pump()
      },
      wantsMore: () => buffer.wantsMore,
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

  function stop(): Promise<void> {
    pull.stop()
    return dispatch.stop()
  }

  async function finish(): Promise<CommitEntry | undefined> {
    state = 'leaving'
    const timeUp = new Promise<void>(resolve => {
      cutShort = resolve
    })
    await Promise.race([stop(), timeUp])
    if (isEnded()) return undefined
    end()
    return commitEntry()
  }

  function end() {
    state = 'ended'
    pull.stop()
    dispatch.abandon()
    buffer.clear()
  }

  function isEnded(): boolean {
    return state === 'ended'
  }

  function commitEntry(): CommitEntry {
    return { queueOffsetId, offsetVersion, offset: tracker.committable, consumerGroupName: groupName, topicName }
  }

  const worker: QueueWorker = {
    get queue() {
      return queue
    },
    update(changed) {
      queue = changed
      if (state !== 'running' && state !== 'paused') return
      state = changed.stopFlag === 1 ? 'paused' : 'running'
      pull.setMaxPause(changed.maxPullTime * 1000)
      pull.setPaused(state === 'paused')
      dispatch.setPaused(state === 'paused')
      dispatch.update(changed)
    },
    async drain(timeoutMs) {
      if (state !== 'ended') draining ??= finish()
      if (draining && !(await endsWithin(clock, timeoutMs, draining))) cutShort()
      return draining
    },
    drop() {
      end()
      cutShort()
    },
    ended: stop,
    nextCommit() {
      return state !== 'ended' && tracker.committable > committed ? commitEntry() : undefined
    },
    settleCommit(sent, result) {
      if (result.outcome === 'advanced' || result.outcome === 'unchanged') committed = Math.max(committed, sent.offset)
      else if (state !== 'ended') deps.onRefused(worker, result)
    },
    status: () => ({
      topicName,
      queueId,
      state: state === 'ended' ? 'leaving' : state,
      position: pull.position,
      committed,
      buffered: buffer.messages,
      running: dispatch.running,
      lastPullAtMs: pull.lastPullAtMs,
      failedPulls: pull.failures,
    }),
  }
  worker.update(assigned)
  void pull.run()
  return worker
}
