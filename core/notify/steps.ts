import type { PendingQueue, Target, TargetState } from './target.ts'

/**
 * What to do about a target, decided by what is known of it. First `next` takes the place of its state; if somebody else has
 * changed that meanwhile, the decision is made anew. Then `send` is sent, and a job is scheduled for `wakeAtMs`.
 */
export type Step = {
  next?: TargetState
  send?: { deliveryId: string; queueIds: number[] }
  wakeAtMs?: number
}

/** A job that has not come by so much after its time was lost: the next hint schedules another. */
export const overdueMs = 300_000
/** What is due at many times is told of with a gap of so much at least, and of an eighth of the time that is left. */
const spreadGapMs = 1_000
const spreadParts = 8

/** A queue has got messages: its hint is sent now, or becomes pending. */
export function hintStep(target: Target, queue: PendingQueue, nowMs: number, newId: () => string): Step {
  const { state } = target
  if (state.isDisabled) return {}
  const isFree = freeAtMs(target, nowMs) <= nowMs && state.delivery === undefined
  const isDue = queue.dueAtMs <= nowMs
  const later = isDue && isFree ? laterOf(queue, nowMs) : queue
  const pending = isDue && isFree ? state.pending.flatMap(each => laterThan(each, queue, nowMs)) : state.pending
  const { next, wakeAtMs } = awaken(
    target,
    { ...state, pending: later ? merge(pending, later, nowMs) : pending },
    nowMs,
  )
  if (!isDue || !isFree) return next === state || isSame(next, state) ? {} : { next, ...wake(wakeAtMs) }
  return {
    next: { ...next, sentAtMs: nowMs },
    send: { deliveryId: newId(), queueIds: [queue.queueId] },
    ...wake(wakeAtMs),
  }
}

/** The job of a time has come: what has failed is repeated, or what is due by now is sent. */
export function wakeStep(target: Target, jobAtMs: number, nowMs: number, newId: () => string): Step {
  const { state } = target
  if (state.isDisabled) return {}
  // The same job once more: whoever had it before may have sent this or not.
  if (state.delivery?.wakeAtMs === jobAtMs) return { send: state.delivery }
  // Another one has taken its place.
  if (state.wakeAtMs !== jobAtMs) return {}
  // Queues delay by a quarter of an hour at most.
  if (jobAtMs > nowMs) return { wakeAtMs: jobAtMs }
  const { wakeAtMs: _come, ...rest } = state
  if (freeAtMs(target, nowMs) > nowMs) return asStep(awaken(target, rest, nowMs))
  if (rest.delivery) return begin(target, rest, { ...rest.delivery, wakeAtMs: jobAtMs }, nowMs)
  const due = rest.pending.filter(({ dueAtMs }) => dueAtMs <= nowMs)
  if (due.length === 0) return asStep(awaken(target, rest, nowMs))
  const pending = rest.pending.flatMap(each => (due.includes(each) ? (laterOf(each, nowMs) ?? []) : each))
  const delivery = {
    deliveryId: newId(),
    queueIds: due.map(({ queueId }) => queueId).toSorted((a, b) => a - b),
    wakeAtMs: jobAtMs,
  }
  return begin(target, { ...rest, pending }, delivery, nowMs)
}

function begin(
  target: Target,
  state: TargetState,
  delivery: NonNullable<TargetState['delivery']>,
  nowMs: number,
): Step {
  const begun = { ...state, delivery, sentAtMs: nowMs }
  const { next, wakeAtMs } = awaken({ ...target, state: begun }, begun, nowMs)
  return { next, send: delivery, ...wake(wakeAtMs) }
}

/** What has become of a delivery. */
export type Outcome =
  | { outcome: 'succeeded' }
  /** `isGone`: the target says that it will never be there again. */
  | { outcome: 'failed'; isGone?: boolean; retryAfterMs?: number }

/** A failing target gets a trial after 5 s, and less and less often, down to every five minutes. */
const shortestPauseMs = 5_000
const longestPauseMs = 300_000
/** What a target asks for itself is granted up to a quarter of an hour. */
const longestAskedMs = 900_000
/** How long a target is left alone that has failed so often before. */
export const pauseMs = (failures: number) => Math.min(longestPauseMs, shortestPauseMs * 2 ** Math.min(failures, 10))

/** A target that has failed for a day is disabled until an operator enables it. */
export const disabledAfterMs = 86_400_000

/** A delivery has ended. `delivery` is absent for what is not repeated: a push, a test, an alarm. */
export function endStep(
  target: Target,
  delivery: { deliveryId: string; queueIds: number[] } | undefined,
  result: Outcome,
  nowMs: number,
): Step {
  const { state } = target
  if (state.isDisabled) return {}
  const isRepeated = state.delivery !== undefined && state.delivery.deliveryId === delivery?.deliveryId
  if (result.outcome === 'succeeded') {
    if (state.failures === 0 && !isRepeated) return {}
    const { failingSinceMs: _since, openUntilMs: _open, ...rest } = state
    const { delivery: _done, ...others } = rest
    return asStep(awaken(target, { ...(isRepeated ? others : rest), failures: 0 }, nowMs))
  }
  const { failures, failingSinceMs = nowMs } = state
  if (result.isGone || nowMs - failingSinceMs >= disabledAfterMs) return { next: disabled(state, 'failures', nowMs) }
  const askedMs = Math.min(longestAskedMs, result.retryAfterMs ?? 0)
  const failing = {
    ...state,
    failures: failures + 1,
    failingSinceMs,
    openUntilMs: nowMs + Math.max(pauseMs(failures), askedMs),
    // One that failed before waits to be repeated: of this one only its queues are left.
    ...(delivery && !isRepeated && state.delivery
      ? {
          pending: delivery.queueIds.reduce((all, queueId) => merge(all, dueNow(queueId, nowMs), nowMs), state.pending),
        }
      : delivery && { delivery: { deliveryId: delivery.deliveryId, queueIds: delivery.queueIds } }),
  }
  return asStep(awaken(target, failing, nowMs))
}

/** Nothing is sent any more, and what was to be is forgotten: what waits is found when it is enabled. */
export function disabled(
  { failures, failingSinceMs }: TargetState,
  by: 'operator' | 'failures',
  nowMs: number,
): TargetState {
  return {
    pending: [],
    failures,
    ...(failingSinceMs !== undefined && { failingSinceMs }),
    isDisabled: true,
    disabledBy: by,
    disabledAtMs: nowMs,
  }
}

/** When the next delivery may begin. A time of sending that is to come is another clock's, and says nothing. */
export function freeAtMs({ state: { sentAtMs = 0, openUntilMs = 0 }, minGapMs }: Target, nowMs: number): number {
  return Math.max(openUntilMs, sentAtMs <= nowMs ? sentAtMs + minGapMs : 0)
}

/** Sees to it that a job comes for what is to be sent. */
function awaken(target: Target, state: TargetState, nowMs: number): { next: TargetState; wakeAtMs?: number } {
  const times = state.pending.map(({ dueAtMs }) => dueAtMs)
  // One that a job has begun is that job's to end.
  if (state.delivery && state.delivery.wakeAtMs === undefined) times.push(nowMs)
  if (times.length === 0) return { next: state }
  const atMs = Math.max(Math.min(...times), nowMs, freeAtMs({ ...target, state }, nowMs))
  return awakenAt(state, atMs, nowMs)
}

/** Sees to it that a job comes at a time, or before it. */
export function awakenAt(state: TargetState, atMs: number, nowMs: number): { next: TargetState; wakeAtMs?: number } {
  const { wakeAtMs } = state
  if (wakeAtMs !== undefined && wakeAtMs <= atMs && wakeAtMs + overdueMs > nowMs) return { next: state }
  return { next: { ...state, wakeAtMs: atMs }, wakeAtMs: atMs }
}

export const asStep = ({ next, wakeAtMs }: { next: TargetState; wakeAtMs?: number }): Step => ({
  next,
  ...wake(wakeAtMs),
})
const wake = (wakeAtMs: number | undefined) => (wakeAtMs === undefined ? {} : { wakeAtMs })

const dueNow = (queueId: number, nowMs: number): PendingQueue => ({ queueId, dueAtMs: nowMs, lastDueAtMs: nowMs })

/** What is due now will be told of after now; so nothing changes for what is pending and due. */
function merge(pending: readonly PendingQueue[], queue: PendingQueue, nowMs: number): PendingQueue[] {
  const there = pending.find(({ queueId }) => queueId === queue.queueId)
  if (!there) return [...pending, queue]
  const dueAtMs = Math.min(there.dueAtMs, queue.dueAtMs)
  const lastDueAtMs = queue.lastDueAtMs <= nowMs ? there.lastDueAtMs : Math.max(there.lastDueAtMs, queue.lastDueAtMs)
  return pending.map(each => (each === there ? { ...there, dueAtMs, lastDueAtMs } : each))
}

/** What is left of a queue that is told of now. */
function laterOf({ queueId, lastDueAtMs }: PendingQueue, nowMs: number): PendingQueue | undefined {
  if (lastDueAtMs <= nowMs) return undefined
  const gapMs = Math.max(spreadGapMs, (lastDueAtMs - nowMs) / spreadParts)
  return { queueId, dueAtMs: Math.min(lastDueAtMs, Math.ceil(nowMs + gapMs)), lastDueAtMs }
}

const laterThan = (each: PendingQueue, told: PendingQueue, nowMs: number) =>
  each.queueId === told.queueId ? (laterOf(each, nowMs) ?? []) : each

function isSame(a: TargetState, b: TargetState): boolean {
  return (
    a.wakeAtMs === b.wakeAtMs &&
    a.pending.length === b.pending.length &&
    a.pending.every((each, i) => {
      const other = b.pending[i]
      return each.dueAtMs === other?.dueAtMs && each.lastDueAtMs === other.lastDueAtMs
    })
  )
}
