import type { HandlerContext } from '../message.ts'

/**
 * What a handler call is told. Most handlers never look at their signal, and making one costs more than all the rest of
 * a call on some versions of Node, so it is made when it is first asked for.
 */
export class CallContext implements HandlerContext {
  readonly groupName: string
  readonly topicName: string
  readonly queueId: number
  #controller: AbortController | undefined
  #isAborted = false

  constructor(queue: { groupName: string; topicName: string; queueId: number }) {
    this.groupName = queue.groupName
    this.topicName = queue.topicName
    this.queueId = queue.queueId
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#isAborted) this.#controller.abort()
    return this.#controller.signal
  }

  /** Not a method: a handler must not abort its own call. */
  static abort(context: CallContext): void {
    context.#isAborted = true
    context.#controller?.abort()
  }
}
