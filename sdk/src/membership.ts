import { type Backoff, fullJitterMs } from '../../core/protocol/backoff.ts'
import type { Clock } from '../../core/protocol/clock.ts'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import { type Api, expectSuccess, type Operation } from './api.ts'
import { createAssignmentWatch } from './assignment-watch.ts'
import { asClientError, PmqClientError } from './errors.ts'
import type { EventListener } from './events.ts'
import { sendHeartbeats } from './heartbeats.ts'
import { ownOf } from './own.ts'

/** What a membership is made of. */
export type MembershipDeps = {
  api: Api
  clock: Clock
  random: () => number
  consumerName: string
  groupName: string
  topicNames: string[]
  /** The place in the group that the consumer takes, wherever it is started. */
  instanceId: string | undefined
  requestTimeoutMs: number
  heartbeatIntervalMs: number
  settingsCheckIntervalMs: number
  emit: EventListener
  /** Takes an assignment. Resolves when all that it takes away has been given up: true if there was any. */
  apply(queues: AssignedQueue[]): Promise<boolean>
  /** What is worked on; undefined while a part of it is on its way out. */
  working(): AssignedQueue[] | undefined
  /** The service has given this consumer up: what it owned may be others' by now. */
  onExpired(): void
  /** Another consumer has the place of this one, which is not to come back. */
  onReplaced(): void
}

/** A consumer's membership in its group. */
export type Membership = {
  /**
   * Registers and joins; tries until it succeeds or `signal` aborts. Rejects at a definite refusal, such as of a group
   * that does not exist.
   */
  join(signal: AbortSignal): Promise<void>
  /**
   * Sends heartbeats and follows the assignment, until `leave`; joins again when given up, unless it was replaced. Never
   * rejects.
   */
  run(): Promise<void>
  /** An answer carried this version of the group. */
  sawVersion(version: number | undefined): void
  /** Asks for the assignment: something must have changed. */
  refresh(): void
  /** Takes no more assignments; heartbeats go on, so that nobody else gets what is still being finished. */
  freeze(): void
  /** Ends `run` and leaves the group; with `keepsPlace` it says that it has stopped, and falls silent. Never rejects. */
  leave(keepsPlace: boolean): Promise<void>
  /** The group's name on the service: a broadcast group gives each consumer its own. */
  readonly groupName: string
  /** Undefined while the service does not know the consumer. */
  readonly consumerId: number | undefined
  /** When the service last said that it is a member, by the monotonic clock; undefined before it has joined. */
  readonly lastHeardAtMs: number | undefined
}

const joinBackoff: Backoff = { baseMs: 200, maxMs: 10_000 }
const heartbeatTimeoutMs = 5_000
const leaveTimeoutMs = 3_000
const leaveAttempts = 2
const leavePauseMs = 200

/** Makes a membership that has not begun: `join` is next, then `run`. */
export function createMembership(deps: MembershipDeps): Membership {
  const { api, clock, random, emit, consumerName, instanceId } = deps
  const leaving = new AbortController()
  let groupName = deps.groupName
  let consumerId: number | undefined
  /** It has joined, or may have: no answer says that it has not. */
  let isMember = false
  let isFrozen = false
  let isReplaced = false
  /** The id by which it was known before it was given up. */
  let formerId = 0
  let lastHeardAtMs: number | undefined
  /** Ends when the consumer is given up or leaves; each registration has its own. */
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
        if (answer.consumerDeleted === 1) giveUp()
        const group = ownOf(answer.consumerGroups, groupName)
        return {
          isChanging: answer.changing === true,
          assignment: group && { version: group.meta.version, queues: Object.values(group.queues ?? {}) },
        }
      },
      apply: deps.apply,
      working: deps.working,
      topicNames: deps.topicNames,
      settingsCheckIntervalMs: deps.settingsCheckIntervalMs,
      onDiffers: names => emit({ type: 'settings_differ', groupName, names }),
      onFailed: (error, retryInMs) => report('getConsumerGroupPolling', error, retryInMs),
    })
  }

  function report(operation: Operation, thrown: unknown, retryInMs?: number) {
    const retry = retryInMs === undefined ? {} : { retryInMs }
    emit({ type: 'request_failed', operation, groupName, error: asClientError(thrown), ...retry })
  }

  /** The service has given this consumer up. */
  function giveUp() {
    if (session.signal.aborted) return
    emit({ type: 'expired', groupName, consumerId: consumerId ?? 0 })
    formerId = consumerId ?? formerId
    consumerId = undefined
    isMember = false
    session.abort()
    watch.stop()
    deps.onExpired()
  }

  /** It would take the place from the other one, which would take it back, and so on: the service has refused it. */
  async function beReplaced(error: PmqClientError) {
    await deregister()
    const known = { groupName, consumerId: formerId }
    consumerId = undefined
    isReplaced = true
    // Before the event: a listener that starts the consumer again begins anew.
    deps.onReplaced()
    emit({ type: 'replaced', ...known, instanceId: instanceId ?? '', error })
  }

  /** With `isRepeated` a refusal is waited out as well: the consumer was a member before. */
  async function join(signal: AbortSignal, isRepeated: boolean) {
    let operation: Operation = 'register'
    let notSubscribed: string[] = []
    for (let retry = 0; !signal.aborted; retry++) {
      const options = { timeoutMs: deps.requestTimeoutMs, signal }
      try {
        operation = 'register'
        const registered = expectSuccess(operation, await api.register({ name: consumerName }, options))
        if (!registered.id) throw new PmqClientError('bad_answer', 'The answer to register has no id.')
        consumerId = registered.id
        operation = 'registerConsumerGroup'
        const consumerGroupNames = { [deps.groupName]: deps.topicNames }
        const request = { consumerId, consumerName, consumerGroupNames, instanceId, returning: isRepeated }
        const joined = await api.registerConsumerGroup(request, options)
        if (joined.replaced) {
          const text = `Another consumer of ${groupName} has the instanceId ${instanceId}.`
          throw new PmqClientError('replaced', text)
        }
        // In PMQ's words. A consumer may be given up between the two requests; it is not the group that is refused.
        if (joined.msg === `ConsumerId_${consumerId}不存在！`)
          throw new PmqClientError('expired', `The service does not know consumer ${consumerId} any more.`)
        groupName = ownOf(expectSuccess(operation, joined).consumerGroupNameNew, deps.groupName) ?? deps.groupName
        isMember = true
        lastHeardAtMs = clock.monotonic()
        notSubscribed = [...(ownOf(joined.notSubscribed, groupName) ?? [])]
        break
      } catch (thrown) {
        const error = asClientError(thrown)
        if (operation === 'registerConsumerGroup') isMember ||= error.inDoubt
        if (signal.aborted) return
        if (error.code === 'replaced' && isRepeated) return beReplaced(error)
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
    for (const topicName of notSubscribed) emit({ type: 'not_subscribed', groupName, topicName })
  }

  const heartbeats = {
    async send(signal: AbortSignal) {
      // asyn 0 asks for the truth; with 1 PMQ's service would not say that the consumer is gone.
      const request = { consumerId, asyn: 0 as const }
      const answer = await api.heartbeat(request, { timeoutMs: heartbeatTimeoutMs, signal })
      expectSuccess('heartbeat', answer)
      if (signal.aborted) return
      if (answer.deleted === 1) giveUp()
      else lastHeardAtMs = clock.monotonic()
      if (answer.deleted === 0) watch.sawVersion(ownOf(answer.versions, groupName))
      return answer.heatbeatTime
    },
    onFailed: (thrown: unknown, retryInMs: number) => report('heartbeat', thrown, retryInMs),
    clock,
    random,
    intervalMs: deps.heartbeatIntervalMs,
  }

  async function deregister(keepsPlace = false) {
    if (consumerId === undefined) return
    // In the end the service finds out by itself that the heartbeats have ended; but until then its queues rest.
    for (let left = leaveAttempts - 1; left >= 0; left--) {
      try {
        const request = { id: consumerId, ...(keepsPlace && { keepsPlace }) }
        expectSuccess('deRegister', await api.deRegister(request, { timeoutMs: leaveTimeoutMs }))
        if (!keepsPlace) emit({ type: 'deregistered', groupName, consumerId })
        return
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
          const ended = sendHeartbeats(heartbeats, session.signal).finally(() => current.stop())
          await Promise.all([ended, current.run()])
          // A consumer that is stopping has nothing to come back for.
          if (leaving.signal.aborted || isFrozen) return
          await join(leaving.signal, true)
          if (isReplaced) return
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
    async leave(keepsPlace) {
      leaving.abort()
      session.abort()
      await running
      // One that has not joined has no place to keep.
      await deregister(keepsPlace && isMember)
    },
    get groupName() {
      return groupName
    },
    get consumerId() {
      return consumerId
    },
    get lastHeardAtMs() {
      return lastHeardAtMs
    },
  }
}
