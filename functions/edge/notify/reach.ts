import { maxAnswerKept, type Target } from '../../../core/notify/target.ts'
import type { Clock } from '../../../core/protocol/clock.ts'
import type { Invoke } from '../push/invoke.ts'
import type { WebhookSender } from '../webhook/sender.ts'

/** A request that is sent to a target, and not more than once. */
export type Request = { deliveryId: string; body: string; timeoutMs: number }

/** What has become of it. */
export type Reached = {
  outcome: 'succeeded' | 'failed'
  durationMs: number
  /** Of HTTP. */
  status?: number
  /** Why it has failed, in our words. */
  error?: string
  /** The beginning of what the target answered. */
  answer?: string
  /** When it wants to be asked again. */
  retryAfterMs?: number
}

export type Reach = (
  target: Pick<Target, 'kind' | 'url' | 'functionName' | 'secrets'>,
  request: Request,
) => Promise<Reached>

export type ReachDeps = {
  clock: Clock
  sender: Pick<WebhookSender, 'send'>
  /** Asynchronously. Absent: this service invokes no functions. */
  invokeAsync?: Invoke
}

/** What PMQ gives its clients for a hint. */
export const requestTimeoutMs = 5_000

/** Sends by HTTP, or by an asynchronous Invoke, whose success is that the event was taken. Never rejects. */
export function createReach({ clock, sender, invokeAsync }: ReachDeps): Reach {
  async function send(
    target: Parameters<Reach>[0],
    { deliveryId, body, timeoutMs }: Request,
  ): Promise<Omit<Reached, 'durationMs'>> {
    if (target.kind === 'lambda') {
      if (!invokeAsync) return { outcome: 'failed', error: 'this service invokes no functions' }
      const answer = await invokeAsync({ functionName: target.functionName ?? '', payload: body, timeoutMs })
      if (answer.outcome === 'returned') return { outcome: 'succeeded' }
      const { error } = answer
      return { outcome: 'failed', error, ...('retryAfterMs' in answer && { retryAfterMs: answer.retryAfterMs }) }
    }
    const { url = '', secrets } = target
    const values = secrets.map(({ value }) => value)
    const answer = await sender.send({
      url,
      secrets: values,
      deliveryId,
      body,
      timeoutMs,
      maxAnswerBytes: maxAnswerKept,
    })
    if (answer.outcome !== 'answered') return { outcome: 'failed', error: answer.error }
    const { status, retryAfterMs } = answer
    const seen = { status, answer: answer.body, ...(retryAfterMs !== undefined && { retryAfterMs }) }
    if (status >= 200 && status <= 299) return { outcome: 'succeeded', ...seen }
    return { outcome: 'failed', error: `the target answered ${status}`, ...seen }
  }

  return async (target, request) => {
    const startedAt = clock.monotonic()
    const reached = await send(target, request)
    return { ...reached, durationMs: Math.round(clock.monotonic() - startedAt) }
  }
}
