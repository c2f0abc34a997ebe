import { PmqClientError } from './errors.ts'
import type { EventListener } from './events.ts'
import type { HandlerContext, Message } from './message.ts'
import { isFunction, isObject } from './options.ts'
import { ignoreRejection, isThenable } from './thenable.ts'
import { copiesOf, copyOf } from './worker/copies.ts'

/** What is called around a consumer's handlers. Nothing that it does may end or stop a loop. */
export type ConsumerListeners = {
  /**
   * Says of each message whether it is for the handler. False: it is not, and counts as consumed. Anything else, and a
   * throw, means that the message is handled. A promise is an error like a throw: it must return at once.
   */
  filter?: ((message: Message) => boolean) | undefined
  /**
   * Asked before each handler call. False, a throw or a rejection: not now; the queue waits and asks again, after 50 ms at
   * first and up to 5 s later. The messages stay with the consumer meanwhile.
   */
  preHandle?: ((messages: readonly Message[], context: HandlerContext) => boolean | Promise<boolean>) | undefined
  /** Told after each handler call what became of it. A throw or a rejection changes nothing; nobody waits for a promise. */
  postHandle?:
    | ((messages: readonly Message[], context: HandlerContext, result: CallResult) => void | Promise<void>)
    | undefined
}

/** What became of a handler call. */
export type CallResult = {
  /** `failed`: some of its messages have, or all; `postponed`: it has not begun; `ignored`: it ended after its signal had aborted. */
  outcome: 'done' | 'failed' | 'postponed' | 'ignored'
  /** Offsets of the messages that failed. */
  failed: readonly number[]
  /** What the handler threw, or what is wrong with what it returned. */
  error: unknown
  durationMs: number
}

/** Listeners that neither throw nor reject, and have messages of their own. Those that do not exist stay absent, so that nothing is paid for them. */
export type SafeListeners = {
  filter: ((message: Message) => boolean) | undefined
  preHandle: ((messages: readonly Message[], context: HandlerContext) => Promise<boolean>) | undefined
  postHandle: ((messages: readonly Message[], context: HandlerContext, result: CallResult) => void) | undefined
}

const names = ['filter', 'preHandle', 'postHandle'] as const satisfies (keyof ConsumerListeners)[]

/** Says what listeners must be, or nothing if they are. */
export function checkListeners(value: unknown): string | undefined {
  const isFine =
    !isObject(value) &&
    Object.entries(value as object).every(
      ([name, listener]) => names.some(known => known === name) && (listener === undefined || !isFunction(listener)),
    )
  return isFine ? undefined : `an object with functions ${names.join(', ')}, or some of them`
}

/** Makes listeners safe to call from the loops, and reports what they throw. */
export function containListeners(
  { filter, preHandle, postHandle }: ConsumerListeners,
  queue: { groupName: string; topicName: string; queueId: number },
  emit: EventListener,
): SafeListeners {
  const report = (listener: keyof ConsumerListeners, error: unknown) => {
    const { groupName, topicName, queueId } = queue
    emit({ type: 'listener_failed', groupName, topicName, queueId, listener, error })
  }
  return {
    filter:
      filter &&
      (message => {
        try {
          const answer: unknown = filter(copyOf(message))
          if (!isThenable(answer)) return answer !== false
          void ignoreRejection(answer)
          throw new PmqClientError('invalid_result', 'The filter returned a promise; it must return at once.')
        } catch (error) {
          report('filter', error)
          return true
        }
      }),
    preHandle:
      preHandle &&
      (async (messages, context) => {
        try {
          return (await preHandle(copiesOf(messages), context)) !== false
        } catch (error) {
          report('preHandle', error)
          return false
        }
      }),
    postHandle:
      postHandle &&
      ((messages, context, result) => {
        void (async () => postHandle(copiesOf(messages), context, result))().catch(error => report('postHandle', error))
      }),
  }
}
