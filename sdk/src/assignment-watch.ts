import { type Backoff, fullJitterMs } from '../../core/protocol/backoff.ts'
import type { Clock } from '../../core/protocol/clock.ts'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import { asClientError, type PmqClientError } from './errors.ts'
import { compareQueues, createSettingsCheck } from './settings-check.ts'
import { createWakeup } from './wakeup.ts'

/** What following an assignment is made of. */
export type AssignmentWatchDeps = {
  /**
   * Asks for the assignment; without one if its version is not above `version`. `isChanging`: queues are on their way to
   * other consumers. Undefined: the answer no longer counts.
   */
  poll(version: number, signal: AbortSignal): Promise<PollAnswer | undefined>
  /** Takes an assignment. Resolves when all that it takes away has been given up: true if there was any. */
  apply(queues: AssignedQueue[]): Promise<boolean>
  /** What is worked on; undefined while a part of it is on its way out. */
  working(): AssignedQueue[] | undefined
  /** The topics that there are handlers for. */
  topicNames: readonly string[]
  /** What is worked on was not what the service says, by these names, and is made so. */
  onDiffers(names: readonly string[]): void
  /** How often that is looked at; 0: never. */
  settingsCheckIntervalMs: number
  onFailed(error: PmqClientError, retryInMs: number | undefined): void
  clock: Clock
  random: () => number
}

export type PollAnswer = { isChanging: boolean; assignment: { version: number; queues: AssignedQueue[] } | undefined }

/** Follows the assignment of one registration. */
export type AssignmentWatch = {
  /** Follows until `stop`. Never rejects. */
  run(): Promise<void>
  sawVersion(version: number | undefined): void
  /** Asks whatever the version. */
  refresh(): void
  stop(): void
}

/** A thousand that start together ask some hundreds of times a second between them. */
const joinBackoff: Backoff = { baseMs: 20, maxMs: 2_000 }
/** How long a new member asks by itself for its first queues; a rebalance takes a moment. */
const joinPatienceMs = 5_000
/** An answer may come from a cache that has not heard yet of what another answer told; it is a second old at most. */
const insistForMs = 2_000
const staleBackoff: Backoff = { baseMs: 20, maxMs: 5_000 }
const failureBackoff: Backoff = { baseMs: 200, maxMs: 10_000 }

/**
 * Asks only when there is a reason: just joined, a version above the known one seen in any answer, or told to. Three
 * versions: `seen` is the greatest that any answer named; `known` is that of the last assignment taken; `presented` is
 * the one that the service is told, and follows `known` only when everything that it takes away has been given up,
 * since to the service a version that is presented says just that. So it is presented once, by a question of its own:
 * a queue that was given and taken again before this consumer heard of it is released by nothing else.
 *
 * Where nothing is asked for long, it looks whether something was missed: it asks for everything, presenting nothing, and
 * adopts what the service says if that goes on to differ from what is worked on.
 */
export function createAssignmentWatch(deps: AssignmentWatchDeps): AssignmentWatch {
  const { clock, random } = deps
  const wakeup = createWakeup(clock)
  const stopping = new AbortController()
  const check = createSettingsCheck({ clock, random, intervalMs: deps.settingsCheckIntervalMs })
  let seen = 0
  let known = 0
  let presented = 0
  /** One question is due, whatever the versions. */
  let isOwed = false
  let insistUntilMs = 0
  let hasQueues = false
  let isChanging = false

  async function run() {
    const joinedAtMs = clock.monotonic()
    let fruitless = 0
    let failures = 0
    while (!stopping.signal.aborted) {
      const nowMs = clock.monotonic()
      // Who has queues hears of a change with their pulls; who has none has to ask.
      const isJoining = !hasQueues && (isChanging || nowMs - joinedAtMs < joinPatienceMs)
      const isIdle = !isOwed && !isJoining && nowMs >= insistUntilMs && seen <= known
      const isLook = isIdle && check.dueAtMs !== undefined && nowMs >= check.dueAtMs
      if (isIdle && !isLook) {
        await wakeup.wait(check.dueAtMs && check.dueAtMs - nowMs)
        continue
      }
      // Before the question: one that becomes due meanwhile is another one.
      isOwed = false
      try {
        const answer = await deps.poll(isLook ? 0 : presented, stopping.signal)
        if (stopping.signal.aborted) return
        failures = 0
        isChanging = answer?.isChanging ?? false
        const assignment = answer?.assignment
        if (isLook) {
          compare(assignment)
          continue
        }
        fruitless = assignment && assignment.version > known ? 0 : fruitless + 1
        if (fruitless === 0) insistUntilMs = 0
        if (assignment && assignment.version >= known) take(assignment.version, assignment.queues)
        // Where there is no reason to ask again the loop waits at its head, until there is one.
        if (isJoining || fruitless > 0)
          await wakeup.wait(pauseMs(isJoining ? joinBackoff : staleBackoff, fruitless, random))
      } catch (thrown) {
        if (stopping.signal.aborted) return
        if (isLook) check.note([])
        else isOwed = true
        const error = asClientError(thrown)
        const retryInMs = Math.max(
          failureBackoff.baseMs / 2,
          fullJitterMs(failureBackoff, failures++, random),
          error.retryAfterMs ?? 0,
        )
        deps.onFailed(error, retryInMs)
        await wakeup.wait(retryInMs)
      }
    }
  }

  function take(version: number, queues: AssignedQueue[]) {
    known = version
    hasQueues = queues.length > 0
    deps.apply(queues).then(
      hasGivenUp => {
        if (version <= presented) return
        presented = version
        // A queue given up may have been assigned anew meanwhile, and only the answer after the giving up tells it right.
        if (hasGivenUp) refresh()
        else ask()
      },
      thrown => deps.onFailed(asClientError(thrown), undefined),
    )
  }

  function compare(told: PollAnswer['assignment']) {
    const working = deps.working()
    // What is new, or being changed, cannot differ yet.
    if (!told || told.version > known || !working) {
      check.note([])
      if (told && told.version > known) take(told.version, told.queues)
      return
    }
    const { version, queues } = told
    const differing = compareQueues(
      working,
      queues.filter(({ originTopicName }) => deps.topicNames.includes(originTopicName)),
    )
    const names = check.note(version < known ? ['version', ...differing] : differing)
    if (names.length === 0) return
    deps.onDiffers(names)
    // Below the known version is a service that was set back: nothing of what it was told before counts any more.
    if (version < known) presented = 0
    seen = version
    take(version, queues)
  }

  function ask() {
    isOwed = true
    wakeup.wake()
  }

  function refresh() {
    insistUntilMs = clock.monotonic() + insistForMs
    wakeup.wake()
  }

  return {
    run,
    refresh,
    sawVersion(version) {
      if (version === undefined || version <= seen) return
      seen = version
      if (seen > known) wakeup.wake()
    },
    stop() {
      stopping.abort()
      wakeup.wake()
    },
  }
}

/** Hardly random: each is wanted soon, and those who have heard of the same version only must not keep in step. */
function pauseMs(backoff: Backoff, fruitless: number, random: () => number): number {
  return Math.min(backoff.maxMs, backoff.baseMs * 2 ** fruitless) * (0.75 + random() / 2)
}
