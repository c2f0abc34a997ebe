import type { Core } from '../../../core/core.ts'
import type { Delivery, Target, TargetRef } from '../../../core/notify/target.ts'
import type { Post } from '../push.ts'
import { keepAnswer } from './keep-answer.ts'
import type { Reach, Reached, Request } from './reach.ts'

/** `isGone`: the target says that it will never be there again. */
export type Sent = Reached & { isGone?: boolean }

export type Deliveries = ReturnType<typeof createDeliveries>

/** Sends to targets, and writes down what was sent and what has become of it. */
export function createDeliveries({ store, clock }: Pick<Core, 'store' | 'clock'>, reach: Reach) {
  const record = ({ owner, name }: TargetRef, delivery: Delivery) => store.addDelivery({ owner, name }, delivery)

  return {
    async send(target: Target, about: Pick<Delivery, 'what' | 'queueIds'>, request: Request): Promise<Sent> {
      const atMs = clock.now()
      const reached = await reach(target, request)
      await record(target, { deliveryId: request.deliveryId, atMs, ...about, ...seenOf(reached) })
      return { ...reached, ...(reached.status === 410 && { isGone: true }) }
    },

    recordCallback(
      target: TargetRef,
      about: Pick<Delivery, 'deliveryId' | 'atMs' | 'queueIds'>,
      reached: Reached & { url: string },
    ) {
      const { url, error, ...seen } = reached
      return record(target, { ...about, what: 'hint', ...seenOf(seen), error: `${url}: ${error}` })
    },

    recordPost: (target: TargetRef, post: Post) => record(target, deliveryOf(post)),
  }
}

function seenOf({ retryAfterMs: _asked, answer, ...reached }: Reached) {
  return { ...reached, ...(answer && { answer: keepAnswer(answer) }) }
}

function deliveryOf({
  deliveryId,
  topicName: _inItsQueue,
  queueId,
  messages,
  startedAtMs,
  outcome,
  ...seen
}: Post): Delivery {
  return {
    deliveryId,
    atMs: startedAtMs,
    what: 'messages',
    queueIds: [queueId],
    messages,
    ...seenOf({ ...seen, outcome: outcome === 'done' ? 'succeeded' : 'failed' }),
  }
}
