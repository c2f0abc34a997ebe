import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Clock, systemClock } from '../../../core/protocol/clock.ts'
import { type Check, invalidOption, isBoolean, isFunction, isObject, resolveOptions, wholeNumber } from '../options.ts'
import { type AnswerDeps, answer, type NotifyRequest } from './answer.ts'
import { fromRequest, toResponse } from './fetch.ts'
import type { NotifyHint } from './hints.ts'
import { fromEvent, type NotifyLambdaAnswer, toAnswer } from './lambda.ts'
import { fromIncoming, respond } from './node-http.ts'
import { createVerify } from './signature.ts'

export type { NotifyHint } from './hints.ts'
export type { NotifyLambdaAnswer } from './lambda.ts'

/** Which hints a receiver accepts, and what it does with them. */
export type NotifyReceiverOptions = {
  /**
   * Secrets of Standard Webhooks, `whsec_…`; a hint must be signed by one of them. Several while they are rotated: the new
   * one is added here, then changed at the sender, then the old one is removed here.
   */
  secrets?: readonly string[] | undefined
  /**
   * Accept hints that nobody has signed, instead of `secrets`. Whoever can reach the receiver can then make consumers ask
   * for messages, and nothing else.
   * @default false
   */
  acceptUnsigned?: boolean | undefined
  /**
   * Takes the hints, such as `client.notified`. The sender is answered when it has ended, and answered alike if it fails:
   * a hint is only a hint.
   */
  onNotify: (hints: readonly NotifyHint[]) => void | Promise<void>
  /** Takes what `onNotify` fails with, and why a body could not be read. @default a process warning, once */
  onError?: ((error: unknown) => void) | undefined
  /** The largest body that is read, in bytes. @default 262144 */
  maxBodyBytes?: number | undefined
  /** How far the time of a signature may be from the clock's, in milliseconds. @default 300000 */
  toleranceMs?: number | undefined
  /** The clock that signatures are held against. @default the system's */
  clock?: Pick<Clock, 'now'> | undefined
}

/**
 * Takes the service's hints that queues have messages, one method for each way in which requests come. None of them
 * throws or rejects.
 *
 * | the request | is answered with |
 * |---|---|
 * | is a hint, and signed | 200, without a body |
 * | is not a `POST` | 405 |
 * | is larger than `maxBodyBytes` | 413 |
 * | has no signature that fits, or one that is too old or too new | 401 |
 * | is not a hint | 400 |
 */
export type NotifyReceiver = {
  /** For `node:http`, and frameworks on top of it where no other has read the body yet (or `express.raw()` has). */
  node(request: IncomingMessage, response: ServerResponse): Promise<void>
  /** For frameworks that give a `Request` and take a `Response`. */
  fetch(request: Request): Promise<Response>
  /** For a Lambda function behind API Gateway (payload 2.0 or 1.0) or a function URL. */
  lambda(event: unknown): Promise<NotifyLambdaAnswer>
}

const receiverDefaults = {
  secrets: [] as readonly string[],
  acceptUnsigned: false,
  onNotify: undefined as NotifyReceiverOptions['onNotify'] | undefined,
  onError: undefined as NotifyReceiverOptions['onError'],
  // Some thousand hints: far more than one request has.
  maxBodyBytes: 256 * 1024,
  // The standard's advice: clocks differ, and a request may be tried again within minutes.
  toleranceMs: 300_000,
  clock: systemClock as Pick<Clock, 'now'>,
}

const checks: Record<keyof NotifyReceiverOptions, Check> = {
  // What is wrong with a secret is said without it, by `createVerify`.
  secrets: () => undefined,
  acceptUnsigned: isBoolean,
  onNotify: isFunction,
  onError: isFunction,
  maxBodyBytes: wholeNumber(1, 64 * 1024 * 1024),
  toleranceMs: wholeNumber(1_000, 3_600_000),
  clock: isObject,
}

/**
 * Makes a receiver of the service's hints. With it a consumer that pauses between its pulls has a message at once.
 *
 * ```ts
 * const receiver = createNotifyReceiver({ secrets: [secret], onNotify: client.notified })
 * http.createServer(receiver.node).listen(8081)
 * ```
 *
 * Throws a `PmqClientError` with code `invalid_options` for options that cannot be; a secret is in no error's text.
 */
export function createNotifyReceiver(given: NotifyReceiverOptions): NotifyReceiver {
  const options = resolveOptions('notify receiver', given, receiverDefaults, checks)
  const { onNotify, maxBodyBytes } = options
  if (!onNotify) throw invalidOption('notify receiver: onNotify is missing; give a function that takes the hints')
  const verify = chooseVerify(options)
  const deps: AnswerDeps = { verify, maxBodyBytes, onNotify, onError: contain(options.onError ?? createWarn()) }
  const take = (request: NotifyRequest) => answer(deps, request)
  return {
    node: async (incoming, response) => respond(incoming, response, await take(fromIncoming(incoming))),
    fetch: async request => toResponse(await take(fromRequest(request))),
    lambda: async event => toAnswer(await take(fromEvent(event))),
  }
}

function chooseVerify({ secrets, acceptUnsigned, toleranceMs, clock }: typeof receiverDefaults) {
  if (!Array.isArray(secrets)) throw invalidOption('notify receiver: secrets is no list; give an array of secrets')
  if (acceptUnsigned && secrets.length > 0)
    throw invalidOption('notify receiver: there are secrets, and acceptUnsigned is true; give one of the two')
  if (!acceptUnsigned && secrets.length === 0)
    throw invalidOption('notify receiver: secrets is missing; give a secret, or set acceptUnsigned to true')
  return acceptUnsigned ? undefined : createVerify(secrets, toleranceMs, clock)
}

/** No more than its name: the text of an error of somebody else's may quote anything. */
function createWarn() {
  let hasWarned = false
  return (error: unknown) => {
    if (hasWarned) return
    hasWarned = true
    const name = error instanceof Error ? error.name : typeof error
    process.emitWarning(`pmq-sdk: the notify receiver failed (${name}). Give onError to hear of all.`, 'PmqWarning')
  }
}

function contain(onError: (error: unknown) => void) {
  return (error: unknown) => {
    try {
      const returned: unknown = onError(error)
      if (returned instanceof Promise) returned.catch(() => undefined)
    } catch {
      // It is the place where failures are told.
    }
  }
}
