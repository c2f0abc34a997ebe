import { readGroup } from '../../core/client/find.ts'
import type { Core } from '../../core/core.ts'
import type { Subscription } from '../../core/model.ts'
import type { Target } from '../../core/notify/target.ts'
import { type HandlerContext, type Message, PmqClientError } from '../../sdk/src/index.ts'
import { lambdaConsumer } from '../../sdk/src/lambda/lambda-consumer.ts'
import { createInProcessTransport } from './in-process.ts'
import type { Invoke } from './push/invoke.ts'
import { outcomeOfFunction, outcomeOfWebhook, type PostOutcome } from './push/outcome.ts'
import { type Call, deliveryIdOf, maxCallBytes, proxyRequest } from './push/proxy-request.ts'
import type { WebhookSender } from './webhook/sender.ts'

export type PushDeps = {
  sender: Pick<WebhookSender, 'send'>
  /** Absent: this service invokes no functions. */
  invoke?: Invoke
  /** Told of each request when it has ended. It must not throw. */
  onPost?(post: Post): void
  /** How long a target may take for a call; less where the run has less time. @default 30000 */
  callTimeoutMs?: number
}

/** A request to a target, and what became of it. */
export type Post = {
  deliveryId: string
  topicName: string
  queueId: number
  messages: number
  startedAtMs: number
  durationMs: number
  outcome: PostOutcome['outcome']
  /** Of HTTP. */
  status?: number
  /** Why it has failed, or has not started. */
  error?: string
  /** What the target answered, as it was sent: to be shown to those alone who may see the target, and escaped. */
  answer?: string
}

/** What a run has done. */
export type PushReport = {
  /** Messages that the target has handled. */
  handled: number
  /** Attempts that have failed; a message that fails repeatedly counts each time. */
  failed: number
  /** True: there was nothing left to hand on. False: there may be more, and another run may begin at once, or after `unavailable`. */
  isDrained: boolean
  /** When the first message is due of those that are not yet, milliseconds since 1970: another run is to begin then. */
  nextDueAtMs?: number
  /** The target took nothing any more. Nothing was counted against a message for that; no run is to begin before. */
  unavailable?: { error: string; retryAfterMs: number }
}

/**
 * Makes pushes: hands the messages of a group of mode `claimed` on to a target, as PMQ does in its mode 3.
 *
 * A push is the SDK's Lambda consumer whose service is this process, and whose handler is the target. So how messages are
 * selected, delayed, kept in order, timed, repeated and committed is that of every consumer. In a queue, calls begin in
 * offset order, `threadSize` of them side by side; where that is more than one, two messages of a key are never handed on at
 * once. What has failed does not block its queue: it goes to the fail topic first; with `retryInPlace` it does. A target
 * that cannot be reached blocks all of them, and nothing is counted.
 *
 * A run renews nothing: its claims last as long as it may. Any number of runs may be under way, also of one group. A run
 * that is killed has lost nothing; what it had not committed is handed on again, under the same delivery ids where the
 * calls are the same.
 */
export function createPush(core: Core, deps: PushDeps) {
  const transport = createInProcessTransport(core)
  const { callTimeoutMs: longestCallMs = 30_000 } = deps

  /**
   * One run: ends before `timeLimitMs`, when nothing is left, or when the target takes nothing. `hints`: queues that come
   * first. Rejects if the service itself has let it do nothing, as when its store is away.
   */
  return async function run(target: Target, hints: readonly number[], timeLimitMs: number): Promise<PushReport> {
    if (target.owner === 'alarms') throw new Error(`target ${target.name} is one of alarms, and is sent no messages`)
    const { groupName } = target.owner
    const { subscriptions = [] } = (await readGroup(core, groupName)) ?? {}
    if (subscriptions.length === 0) return { handled: 0, failed: 0, isDrained: true }

    const { reserveMs, stopTimeoutMs, callMs } = shareTime(timeLimitMs, longestCallMs)
    const ending = new AbortController()
    let unavailable: PushReport['unavailable']
    /** A target that has failed is tried with one call first, while the others wait without having begun. */
    let trial: 'to come' | 'under way' | 'over' = target.state.failures > 0 ? 'to come' : 'over'

    async function handOn(subscription: Subscription, messages: readonly Message[], context: HandlerContext) {
      const { queueId, signal } = context
      const { topicName } = subscription
      if (unavailable) throw postponed(unavailable.error)
      if (trial === 'under way') throw postponed('the target is being tried')
      if (trial === 'to come') trial = 'under way'
      const outcome = await post(
        target,
        { groupName, topicName, queueId, messages },
        timeoutOf(subscription, callMs),
        signal,
      )
      if (outcome.outcome !== 'not_started' || signal.aborted) trial = 'over'
      if (outcome.outcome === 'done') return outcome.failIds
      // Given up: nothing of it counts any more, least of all against the target.
      if (outcome.outcome === 'failed' || signal.aborted) throw new Error(outcome.error)
      unavailable ??= { error: outcome.error, retryAfterMs: pauseOf(outcome.retryAfterMs) }
      ending.abort()
      throw postponed(outcome.error)
    }

    const consume = lambdaConsumer({
      transport,
      clock: core.clock,
      random: core.random,
      groupName,
      topics: Object.fromEntries(
        subscriptions.map(subscription => [
          subscription.topicName,
          (messages, context) => handOn(subscription, messages, context),
        ]),
      ),
      ordering: Object.fromEntries(
        subscriptions.map(({ topicName, threadSize }) => [topicName, threadSize > 1 ? 'key' : 'queue']),
      ),
      maxCallBytes,
      reserveMs,
      stopTimeoutMs,
      maxIdleMs: longestIdleMs,
      // What targets fail with is told by `onPost`, and what the service fails with is logged where that happens.
      onEvent: () => undefined,
    })
    const { handled, failed, isDrained, nextDueAtMs } = await consume(hintsOf(groupName, hints), {
      getRemainingTimeInMillis: () => timeLimitMs,
      functionName: `push ${target.name}`,
      awsRequestId: core.newId(),
      signal: ending.signal,
    })
    return {
      handled,
      failed,
      isDrained: isDrained && unavailable === undefined,
      ...(nextDueAtMs !== undefined && { nextDueAtMs }),
      ...(unavailable && { unavailable }),
    }
  }

  async function post(target: Target, call: Call, timeoutMs: number, signal: AbortSignal): Promise<PostOutcome> {
    const deliveryId = deliveryIdOf(call)
    const startedAtMs = core.clock.now()
    const startedAt = core.clock.monotonic()
    const { outcome, ...seen } = await reach(target, deliveryId, call, timeoutMs, signal)
    deps.onPost?.({
      deliveryId,
      topicName: call.topicName,
      queueId: call.queueId,
      messages: call.messages.length,
      startedAtMs,
      durationMs: Math.round(core.clock.monotonic() - startedAt),
      outcome: outcome.outcome,
      ...('error' in outcome && { error: outcome.error }),
      ...seen,
    })
    return outcome
  }

  async function reach(target: Target, deliveryId: string, call: Call, timeoutMs: number, signal: AbortSignal) {
    const text = proxyRequest(call, core.settings.timeZone)
    if (target.kind === 'lambda') {
      if (!deps.invoke) return { outcome: notStarted('this service invokes no functions') }
      const { functionName = '' } = target
      const answer = await deps.invoke({ functionName, payload: text, timeoutMs, signal })
      const outcome = outcomeOfFunction(answer, call.messages)
      return { outcome, ...('payload' in answer && { answer: answer.payload }) }
    }
    const { url = '', secrets } = target
    const request = {
      url,
      secrets: secrets.map(({ value }) => value),
      deliveryId,
      body: text,
      timeoutMs,
      maxAnswerBytes,
      signal,
    }
    const answer = await deps.sender.send(request)
    const outcome = outcomeOfWebhook(answer, call.messages)
    return { outcome, ...('status' in answer && { status: answer.status, answer: answer.body }) }
  }
}

/** The ids of a whole call are a few KB; ten times that, for who says more. */
const maxAnswerBytes = 256 * 1024
/** A run that waits for messages to become due is paid for; one that comes back for them costs a start. */
const longestIdleMs = 1_000
/** What of a run's time is kept to commit. */
const longestReserveMs = 3_000
/** What a call that ends late has to bring its failures away. */
const longestSettleMs = 2_000

/**
 * How a run's time is shared out. A call that is begun at the last moment ends by itself before it would be given up, so
 * that what the target has answered always counts.
 */
function shareTime(timeLimitMs: number, longestCallMs: number) {
  const reserveMs = Math.max(100, Math.min(longestReserveMs, Math.floor(timeLimitMs / 5)))
  const halfMs = Math.floor((timeLimitMs - reserveMs) / 2)
  const stopTimeoutMs = Math.max(0, Math.min(longestCallMs + longestSettleMs, halfMs))
  const settleMs = Math.min(longestSettleMs, Math.floor(stopTimeoutMs / 4))
  return { reserveMs, stopTimeoutMs, callMs: Math.max(1, stopTimeoutMs - settleMs) }
}

/**
 * A call ends before its subscription's time-out would end it, which counts as a failure whatever had become of the call: a
 * target that no connection comes about to has not begun.
 */
function timeoutOf({ timeoutSeconds }: Subscription, callMs: number): number {
  return timeoutSeconds > 0 ? Math.min(callMs, timeoutSeconds * 900) : callMs
}

/** A failing target gets a trial every 5 s, and what it asks for itself within these bounds: delayed jobs wait 15 minutes at most. */
const usualPauseMs = 5_000
const shortestPauseMs = 1_000
const longestPauseMs = 900_000

const pauseOf = (askedMs = usualPauseMs) => Math.min(longestPauseMs, Math.max(shortestPauseMs, askedMs))

const postponed = (text: string) => new PmqClientError('postponed', text)

const hintsOf = (consumerGroupName: string, queueIds: readonly number[]) => ({
  msgNotifyDtos: queueIds.map(queueId => ({ queueId, consumerGroupName })),
})

const notStarted = (error: string): PostOutcome => ({ outcome: 'not_started', error })
