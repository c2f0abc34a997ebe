import { createCallbackCheck, refuseAddress } from '../../../core/notify/network-policy.ts'
import { isCallback, type NetworkPolicy, parseTargetUrl, refuseTargetUrl } from '../../../core/notify/target-url.ts'
import { type Clock, systemClock } from '../../../core/protocol/clock.ts'
import { createRoutes } from './agents.ts'
import { exchange } from './exchange.ts'
import { createResolve, type Resolve, resolveLocally } from './resolve.ts'
import { signatureHeaders } from './sign.ts'

export type { NetworkPolicy } from '../../../core/notify/target-url.ts'

export type WebhookRequest = {
  url: string
  /** `whsec_…`; the request is signed by each of them, and by none where there is none. */
  secrets: readonly string[]
  /** The same for each try of a delivery, by which its receiver knows a repetition. */
  deliveryId: string
  /** JSON. */
  body: string
  /** For the whole exchange: look-up, connection, TLS, headers, body. */
  timeoutMs: number
  /** Of an answer, no more is read. */
  maxAnswerBytes: number
  signal?: AbortSignal
}

/**
 * What has become of a webhook.
 *
 * | | the receiver's handler |
 * |---|---|
 * | `answered` | has ended, or there is more of its answer than was to be read (`isCut`). Any status; nothing is followed |
 * | `not_sent` | has not started: no connection came about, or none was allowed |
 * | `no_answer` | may have run: no answer, or none that is one, after the request went out |
 */
export type WebhookAnswer =
  | {
      outcome: 'answered'
      status: number
      /** At most `maxAnswerBytes` of it, as it was sent: nothing is decompressed. */
      body: string
      isCut: boolean
      /** What `Retry-After` says; it may be anything. */
      retryAfterMs?: number
    }
  | { outcome: 'not_sent'; error: string }
  | { outcome: 'no_answer'; error: string }

export type WebhookSender = {
  /** Never rejects, and is over in time. What targets do delays that of no other. */
  send(request: WebhookRequest): Promise<WebhookAnswer>
  /** Ends all connections, also those in use. */
  close(): void
}

export type WebhookSenderDeps = {
  clock?: Clock
  /** @default name servers; where private targets are allowed, as this machine does */
  resolve?: Resolve
}

/** Makes a sender of webhooks, which are signed by Standard Webhooks and reach only what the policy allows. */
export function createWebhookSender(policy: NetworkPolicy, deps: WebhookSenderDeps = {}): WebhookSender {
  const { clock = systemClock } = deps
  const names = createResolve()
  const resolve = deps.resolve ?? (policy.allowPrivate ? resolveLocally : names.resolve)
  const now = () => clock.now()
  const isInCallbackNetwork = createCallbackCheck(policy)
  const targets = createRoutes(address => refuseAddress(address, policy), resolve, {
    isPublic: !policy.allowPrivate,
    now,
  })
  // They are addresses; no name is ever looked up for them.
  const callbacks = createRoutes(
    address => (isInCallbackNetwork(address) ? undefined : 'an address in no callback network'),
    async () => [],
    { isPublic: false, now },
  )
  let isClosed = false

  async function send(request: WebhookRequest): Promise<WebhookAnswer> {
    const { secrets, deliveryId, timeoutMs, maxAnswerBytes, signal } = request
    if (isClosed) return notSent('the sender was closed')
    if (signal?.aborted) return notSent('it was given up')
    const refusal = refuseTargetUrl(request.url, policy)
    const url = parseTargetUrl(request.url)
    if (refusal !== undefined || typeof url === 'string') return notSent(refusal ?? String(url))
    const routes = isCallback(url, policy) ? callbacks : targets
    const startedAtMs = clock.monotonic()
    const exchangeOnce = (leftMs: number) =>
      exchange({
        route: url.protocol === 'https:' ? routes.https : routes.http,
        url,
        headers: {
          ...signatureHeaders(secrets, deliveryId, now(), request.body),
          'content-type': 'application/json',
          'user-agent': 'pmq-serverless-webhook',
        },
        body: Buffer.from(request.body),
        timeoutMs: leftMs,
        maxAnswerBytes,
        signal,
        now,
      })

    routes.endStale(now())
    const { isStale, ...answer } = await exchangeOnce(timeoutMs)
    if (!isStale) return answer
    // Most likely its end and our request have crossed. A receiver that has read it knows the repetition by its id.
    routes.endIdle()
    const leftMs = timeoutMs - (clock.monotonic() - startedAtMs)
    if (leftMs <= 0 || isClosed) return answer
    const { isStale: _, ...second } = await exchangeOnce(leftMs)
    // The first one was sent.
    return second.outcome === 'not_sent' ? { ...second, outcome: 'no_answer' } : second
  }

  return {
    async send(request) {
      try {
        return await send(request)
      } catch (error) {
        // What cannot be sent at all: a secret that is none, an id that is no header.
        return notSent(error instanceof Error ? error.message : String(error))
      }
    },
    close() {
      isClosed = true
      targets.close()
      callbacks.close()
      names.close()
    },
  }
}

const notSent = (error: string): WebhookAnswer => ({ outcome: 'not_sent', error })
