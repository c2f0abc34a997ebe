import { PublishError } from './errors.ts'
import type { NewMessage } from './message.ts'

/**
 * Called for each message before it is taken: a copy, which it may change, or another message that it returns, is what is
 * published. Both are checked against the limits afterwards. What it throws makes the publish fail with code
 * `pre_send_failed` and that as its `cause`; nothing of that publish is sent then. It must return at once, not by a
 * promise: publishes keep their order.
 */
export type PreSendListener = (message: NewMessage, topicName: string) => NewMessage | undefined

/** The user's functions that take part in what a client does. */
export type Listeners = {
  /** @default none */
  preSend?: PreSendListener | undefined
}

/** The message that a listener makes of one. Throws a `PublishError` where the listener throws or makes none. */
export function callPreSend(preSend: PreSendListener, topicName: string, given: NewMessage): NewMessage {
  // What is no message is refused with better words by the check that follows.
  if (typeof given !== 'object' || given === null) return given
  const copy = { ...given }
  let made: unknown
  try {
    made = preSend(copy, topicName)
  } catch (cause) {
    throw new PublishError('pre_send_failed', 'The preSend listener threw; nothing was sent.', {
      cause,
      outcome: 'not_stored',
    })
  }
  // Whatever it is: the check of messages comes next.
  if (!(made instanceof Promise)) return (made ?? copy) as NewMessage
  // It is not waited for; its rejection would end the process.
  made.catch(() => undefined)
  throw new PublishError('pre_send_failed', 'The preSend listener returned a promise; it must return at once.', {
    outcome: 'not_stored',
  })
}

/** Calls a function of the user's of which nothing is expected, and hands on what it throws or rejects with. */
export function callSafely(call: () => unknown, onThrown: (thrown: unknown) => void): void {
  try {
    const returned = call()
    // An async function is accepted where `void` is expected; its rejection would end the process.
    if (returned instanceof Promise) returned.catch(onThrown)
  } catch (thrown) {
    onThrown(thrown)
  }
}
