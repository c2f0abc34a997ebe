import type { HandlerContext, ManualCommitOptions } from '../message.ts'

/** The queue that a call is of, and what commits by hand for it. */
export type CallQueue = {
  groupName: string
  topicName: string
  queueId: number
  commit: HandlerContext['commit']
}

/**
 * What a handler call is told. Most handlers never look at their signal, and making one costs more than all the rest of
 * a call on some versions of Node, so it is made when it is first asked for.
 */
export class CallContext implements HandlerContext {
  readonly groupName: string
  readonly topicName: string
  readonly queueId: number
  readonly #queue: CallQueue
  #controller: AbortController | undefined
  /** Set when the call no longer counts. */
  #reason: Error | undefined

  constructor(queue: CallQueue) {
    this.groupName = queue.groupName
    this.topicName = queue.topicName
    this.queueId = queue.queueId
    this.#queue = queue
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#reason) this.#controller.abort(this.#reason)
    return this.#controller.signal
  }

  get commit(): HandlerContext['commit'] {
    // Not a method: handlers take it out of its object, as they do with the signal.
    return (offset: number, options?: ManualCommitOptions) =>
      this.#reason ? Promise.reject(this.#reason) : this.#queue.commit(offset, options)
  }

  /** Not a method: a handler must not abort its own call. */
  static abort(context: CallContext, reason: Error): void {
    context.#reason ??= reason
    context.#controller?.abort(context.#reason)
  }
}
