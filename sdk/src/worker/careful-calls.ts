import type { SafeListeners } from '../consumer-listeners.ts'
import type { PmqClientError } from '../errors.ts'
import type { Message, MessageHandler } from '../message.ts'
import type { Caution } from './caution.ts'

/** A handler and what is called around it. */
export type Calls = { handler: MessageHandler } & Pick<SafeListeners, 'preHandle' | 'postHandle'>

/**
 * The same for a queue that is worked through carefully: calls begin with its leave, `preHandle` too, which is the
 * application's as much as the handler is; and the suspect fails without one. `setAside` may take that out of the call.
 */
export function makeCareful(
  caution: Caution,
  { handler, preHandle, postHandle }: Calls,
  setAside: (suspect: readonly Message[], error: PmqClientError) => boolean,
): Calls {
  const ask: NonNullable<Calls['preHandle']> = async (messages, context) => {
    if (caution.isSuspect(messages)) return caution.mayJudge()
    if (!(await caution.mayBegin(messages))) return false
    if (!preHandle || (await preHandle(messages, context))) return true
    caution.ended(messages, false)
    return false
  }
  return {
    handler(messages, context) {
      if (!caution.isSuspect(messages)) return handler(messages, context)
      const error = caution.judge()
      if (setAside(messages, error)) return
      throw error
    },
    get preHandle() {
      return caution.isOn ? ask : preHandle
    },
    postHandle(messages, context, result) {
      caution.ended(messages, result.outcome === 'failed')
      postHandle?.(messages, context, result)
    },
  }
}
