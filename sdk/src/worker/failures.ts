import type { FailureCause } from '../../../core/protocol/failures.ts'
import type { AssignedQueue } from '../../../core/protocol/membership.ts'
import type { PublishMessage } from '../../../core/protocol/publish.ts'
import type { EventListener } from '../events.ts'
import type { Message } from '../message.ts'
import type { Failures } from './fail-sender.ts'
import { nextRetryCount } from './failure-plan.ts'

/** What bringing failures of one queue away is made of. */
export type FailureDeskDeps = {
  /** The queue with its present settings. */
  queue(): AssignedQueue
  /** Brings them to the fail topic, and goes on until it has them. Never rejects. */
  send(failures: Failures): Promise<'stored' | 'fenced' | 'aborted'>
  /** The queue has another owner by now. */
  onFenced(): void
  emit: EventListener
}

/** Knows which failures of a queue go to the fail topic, and brings them there; and what else of it has to be told. */
export type FailureDesk = {
  /** Whether the service has to know of a success before it is done with: of a message that has failed before. */
  confirms(): boolean
  leaving(failed: readonly Message[], failures: number): readonly Message[]
  /** True when the service has all of it. `failures`: how often they have failed here. Never rejects. */
  bringAway(
    messages: readonly Message[],
    failures: number,
    succeeded: readonly Message[],
    cause: FailureCause | undefined,
  ): Promise<boolean>
}

/** Makes the desk of a queue. */
export function createFailureDesk(deps: FailureDeskDeps): FailureDesk {
  return {
    leaving(failed, failures) {
      const queue = deps.queue()
      return failed.filter(message => nextRetryCount(queue, message, failures) !== undefined)
    },
    confirms: () => deps.queue().topicType === 2,
    async bringAway(messages, failures, succeeded, cause) {
      const queue = deps.queue()
      const { queueId, topicName, consumerGroupName, queueOffsetId, offsetVersion, failTopicName = '' } = queue
      const failed = messages.map(message => {
        // The settings may say by now that it is to be handed out again in place; it is on its way nevertheless.
        return toFailed(message, nextRetryCount(queue, message, failures) ?? message.retryCount + 1)
      })
      const outcome = await deps.send({
        queueId,
        consumerGroupName,
        queueOffsetId,
        offsetVersion,
        failTopicName,
        messages: failed,
        cause,
        succeeded: queue.topicType === 2 ? succeeded.map(({ offset }) => offset) : [],
      })
      if (outcome === 'fenced') deps.onFenced()
      if (outcome !== 'stored') return false
      if (failed.length === 0) return true
      const dead = failed.filter(({ retryCount }) => (retryCount ?? 0) >= queue.retryCount)
      deps.emit({
        type: 'failures_stored',
        groupName: consumerGroupName,
        topicName,
        queueId,
        failTopicName,
        offsets: messages.map(({ offset }) => offset),
        deadOffsets: dead.map(({ id }) => id ?? 0),
      })
      return true
    },
  }
}

function toFailed({ offset, tag, bizId, head, body, traceId, key }: Message, retryCount: number): PublishMessage {
  return { id: offset, tag, bizId, head: { ...head }, body, traceId, retryCount, key }
}
