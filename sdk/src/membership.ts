import { type Backoff, fullJitterMs } from '../../core/protocol/backoff.ts'
import type { Clock } from '../../core/protocol/clock.ts'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import { type Api, expectSuccess, type Operation } from './api.ts'
import { createAssignmentWatch } from './assignment-watch.ts'
import { asClientError, PmqClientError } from './errors.ts'
import type { EventListener } from './events.ts'

/** What a membership is made of. */
export type MembershipDeps = {
  api: Api
  clock: Clock
  random: () => number
  consumerName: string
  groupName: string
  topicNames: string[]
  requestTimeoutMs: number
  heartbeatIntervalMs: number
  emit: EventListener
  /** Takes an assignment. Resolves when all that it takes away has been given up: true if there was any. */
  apply(queues: AssignedQueue[]): Promise<boolean>
  /** The service has given this consumer up: what it owned may be others' by now. */
  onExpired(): void
}

/** A consumer's membership in its group. */
export type Membership = {
  /**
   * Registers and joins; tries until it succeeds or `signal` aborts. Rejects at a definite refusal, such as of a group
   * that does not exist.
   */
  join(signal: AbortSignal): Promise<void>
  /** Sends heartbeats and follows the assignment, until `leave`; joins again when given up. Never rejects. */
  run(): Promise<void>
  /** An answer carried this version of the group. */
  sawVersion(version: number | undefined): void
  /** Asks for the assignment: something must have changed. */
  refresh(): void
  /** Takes no more assignments; heartbeats go on, so that nobody else gets what is still being finished. */
  freeze(): void
  /** Ends `run` and leaves the group. Never rejects. */
  leave(): Promise<void>
  /** The group's name on the service: a broadcast group gives each consumer its own. */
  readonly groupName: string
  readonly consumerId: number | undefined
}

const joinBackoff: Backoff = { baseMs: 200, maxMs: 10_000 }
/** A heartbeat that fails is repeated well within the 30 s after which the service gives a consumer up. */
const heartbeatBackoff: Backoff = { baseMs: 500, maxMs: 4_000 }
const heartbeatTimeoutMs = 5_000
/** Soon, as PMQ's client does: the answer says how often the service wants to hear of a consumer. */
const firstHeartbeatMs = 1_000
const leaveTimeoutMs = 3_000
const leaveAttempts = 2
const leavePauseMs = 200

/** What the service asks for, within bounds: whatever it says, heartbeats neither flood it nor end. */
function heartbeatPauseMs(askedSeconds: unknown, longestMs: number): number {
  const askedMs = typeof askedSeconds === 'number' && askedSeconds >= 1 ? askedSeconds * 1000 : longestMs
  return Math.min(longestMs, askedMs)
}

/** Makes a membership that has not begun: `join` is next, then `run`. */
export function createMembership(deps: MembershipDeps): Membership {
  const { api, clock, random, emit, consumerName } = deps
  const leaving = new AbortController()
  let groupName = deps.groupName
  let consumerId: number | undefined
  let isFrozen = false
  /** Ends when the consumer expires or leaves; each registration has its own. */
  let session = new AbortController()
  let watch = newWatch()

  function newWatch() {
    return createAssignmentWatch({
      clock,
      random,
      poll: async (version, signal) => {
        const request = { consumerId, consumerGroupVersion: { [groupName]: version }, waitMs: 0 }
        const answer = await api.getConsumerGroupPolling(request, { timeoutMs: deps.requestTimeoutMs, signal })
        expectSuccess('getConsumerGroupPolling', answer)
        // An answer that comes after all tells of an earlier registration.
        if (signal.aborted) return undefined
        if (answer.consumerDeleted === 1) expire()
        const group = answer.consumerGroups?.[groupName]
        return {
          isChanging: answer.changing === true,
          assignment: group && { version: group.meta.version, queues: Object.values(group.queues ?? {}) },
        }
      },
      apply: deps.apply,
      onFailed: (error, retryInMs) => report('getConsumerGroupPolling', error, retryInMs),
    })
  }

  function report(operation: Operation, thrown: unknown, retryInMs?: number) {
    const retry = retryInMs === undefined ? {} : { retryInMs }
    emit({ type: 'request_failed', operation, groupName, error: asClientError(thrown), ...retry })
  }

  function expire() {
    if (session.signal.aborted) return
    emit({ type: 'expired', groupName, consumerId: consumerId ?? 0 })
    session.abort()
    watch.stop()
    deps.onExpired()
  }

  /** With `isRepeated` a refusal is waited out as well: the consumer was a member before. */
  async function join(signal: AbortSignal, isRepeated: boolean) {
    let operation: Operation = 'register'
    for (let retry = 0; !signal.aborted; retry++) {
      const options = { timeoutMs: deps.requestTimeoutMs, signal }
      try {
        operation = 'register'
        const registered = expectSuccess(operation, await api.register({ name: consumerName }, options))
        if (!registered.id) throw new PmqClientError('bad_answer', 'The answer to register has no id.')
        consumerId = registered.id
        operation = 'registerConsumerGroup'
        const consumerGroupNames = { [deps.groupName]: deps.topicNames }
        const joined = await api.registerConsumerGroup({ consumerId, consumerName, consumerGroupNames }, options)
        // In PMQ's words. A consumer may be given up between the two requests; it is not the group that is refused.
        if (joined.msg === `ConsumerId_${consumerId}不存在！`)
          throw new PmqClientError('expired', `The service does not know consumer ${consumerId} any more.`)
        groupName = expectSuccess(operation, joined).consumerGroupNameNew?.[deps.groupName] ?? deps.groupName
        break
      } catch (thrown) {
        if (signal.aborted) return
        const error = asClientError(thrown)
        if (!error.retryable && !isRepeated) throw error
        const retryInMs = Math.max(
          joinBackoff.baseMs / 2,
          fullJitterMs(joinBackoff, retry, random),
          error.retryAfterMs ?? 0,
        )
        report(operation, error, retryInMs)
        await clock.sleep(retryInMs, signal)
      }
    }
    if (signal.aborted) return
    session = new AbortController()
    watch = newWatch()
    if (isFrozen) watch.stop()
    emit({ type: 'registered', groupName, consumerId: consumerId ?? 0, consumerName })
  }

  async function sendHeartbeats(signal: AbortSignal) {
    let waitMs = Math.min(deps.heartbeatIntervalMs, firstHeartbeatMs)
    for (let failures = 0; ; ) {
      await clock.sleep(waitMs, signal)
      if (signal.aborted) return
      try {
        // asyn 0 asks for the truth; with 1 PMQ's service would not say that the consumer is gone.
        const request = { consumerId, asyn: 0 as const }
        const answer = await api.heartbeat(request, { timeoutMs: heartbeatTimeoutMs, signal })
        expectSuccess('heartbeat', answer)
        if (signal.aborted) return
        if (answer.deleted === 1) return expire()
        watch.sawVersion(answer.versions?.[groupName])
        failures = 0
        waitMs = heartbeatPauseMs(answer.heatbeatTime, deps.heartbeatIntervalMs)
      } catch (thrown) {
        if (signal.aborted) return
        waitMs = Math.min(deps.heartbeatIntervalMs, 100 + fullJitterMs(heartbeatBackoff, failures++, random))
        report('heartbeat', thrown, waitMs)
      }
    }
  }

  async function deregister() {
    if (consumerId === undefined) return
    // In the end the service finds out by itself that the heartbeats have ended; but until then its queues rest.
    for (let left = leaveAttempts - 1; left >= 0; left--) {
      try {
        expectSuccess('deRegister', await api.deRegister({ id: consumerId }, { timeoutMs: leaveTimeoutMs }))
        return emit({ type: 'deregistered', groupName, consumerId })
      } catch (thrown) {
        report('deRegister', thrown, left > 0 ? leavePauseMs : undefined)
        if (left > 0) await clock.sleep(leavePauseMs)
      }
    }
  }

  let running: Promise<void> = Promise.resolve()

  return {
    join: signal => join(signal, false),
    run() {
      running = (async () => {
        while (!leaving.signal.aborted) {
          const current = watch
          const ended = sendHeartbeats(session.signal).finally(() => current.stop())
          await Promise.all([ended, current.run()])
          // A consumer that is stopping has nothing to come back for.
          if (leaving.signal.aborted || isFrozen) return
          await join(leaving.signal, true)
        }
      })()
      return running
    },
    sawVersion: version => watch.sawVersion(version),
    refresh: () => watch.refresh(),
    freeze() {
      isFrozen = true
      watch.stop()
    },
    async leave() {
      leaving.abort()
      session.abort()
      await running
      await deregister()
    },
    get groupName() {
      return groupName
    },
    get consumerId() {
      return consumerId
    },
  }
}
