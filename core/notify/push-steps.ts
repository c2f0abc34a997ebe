import { asStep, awakenAt, endStep, freeAtMs, type Step } from './steps.ts'
import type { Target } from './target.ts'

/** What a run of a push has come to. */
export type PushEnd = {
  handled: number
  isDrained: boolean
  nextDueAtMs?: number
  unavailable?: { retryAfterMs: number }
}

/** A queue has got messages while its target may not be tried: a run is to begin when it may. Otherwise now (`isDue`). */
export function pushStep(target: Target, nowMs: number): Step & { isDue: boolean } {
  const { state } = target
  if (state.isDisabled) return { isDue: false }
  const { openUntilMs = 0 } = state
  return openUntilMs > nowMs
    ? { isDue: false, ...changed(target, awakenAt(state, openUntilMs, nowMs)) }
    : { isDue: true }
}

/** The job of a push has come; it comes again where the target may not be tried yet. */
export function pushWakeStep(target: Target, jobAtMs: number, nowMs: number): Step & { isDue: boolean } {
  const { state } = target
  if (state.isDisabled || state.wakeAtMs !== jobAtMs) return { isDue: false }
  const atMs = Math.max(jobAtMs, state.openUntilMs ?? 0)
  const { wakeAtMs: _come, ...rest } = state
  if (atMs <= nowMs) return { isDue: true, next: rest }
  return { isDue: false, ...(atMs === jobAtMs ? { wakeAtMs: jobAtMs } : asStep(awakenAt(rest, atMs, nowMs))) }
}

/** A run has ended. Another one is to begin if there is something left: now, when it is due, or when the target may be tried. */
export function pushEndStep(target: Target, end: PushEnd, nowMs: number): Step {
  const { unavailable, handled, isDrained, nextDueAtMs } = end
  const ended = unavailable
    ? endStep(target, undefined, { outcome: 'failed', ...unavailable }, nowMs)
    : handled > 0
      ? endStep(target, undefined, { outcome: 'succeeded' }, nowMs)
      : {}
  const state = ended.next ?? target.state
  if (state.isDisabled || (isDrained && nextDueAtMs === undefined)) return ended
  const beginsAtMs = isDrained ? (nextDueAtMs ?? nowMs) : nowMs
  const again = awakenAt(state, Math.max(beginsAtMs, nowMs, freeAtMs({ ...target, state }, nowMs)), nowMs)
  return again.next === target.state ? {} : asStep(again)
}

const changed = (target: Target, awoken: { next: Target['state']; wakeAtMs?: number }): Step =>
  awoken.next === target.state ? {} : asStep(awoken)
