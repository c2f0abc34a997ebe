import type { CommitEntry, CommitResponse } from '../../core/protocol/commit.ts'
import type { FailuresRequest, FailuresResponse } from '../../core/protocol/failures.ts'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import type { PullResponse } from '../../core/protocol/pull.ts'
import { type Api, expectSuccess } from './api.ts'

/** What requests about queues are made of. */
export type QueueRequestsDeps = {
  api: Api
  requestTimeoutMs: number
  maxPullBytes: number
  maxPullWaitMs: number
  /** The member that asks; undefined for one whose queues are claimed. */
  consumerId(): number | undefined
  /** An answer has told the version of this group. */
  onVersion?(groupName: string, version: number | undefined): void
}

/** What is asked of the service by one who works on queues. Each rejects if there is no good answer. */
export type QueueRequests = {
  /** What is behind `position`; `fenced` if the queue is not this one's any more. */
  pull(queue: AssignedQueue, position: number, signal: AbortSignal): Promise<PullResponse>
  sendFailures(request: FailuresRequest, signal: AbortSignal): Promise<FailuresResponse>
  /** With `givesUp` it also gives the queues up. */
  commit(queueOffsets: CommitEntry[], givesUp: boolean, signal: AbortSignal): Promise<CommitResponse>
}

/** Makes the requests of one consumer. */
export function createQueueRequests(deps: QueueRequestsDeps): QueueRequests {
  const { api, requestTimeoutMs, maxPullBytes: maxBytes } = deps
  return {
    async pull(queue, offsetStart, signal) {
      const { queueId, topicName, consumerGroupName, queueOffsetId, offsetVersion } = queue
      const waitMs = Math.min(deps.maxPullWaitMs, queue.maxPullTime * 1000)
      const owner = { consumerId: deps.consumerId(), consumerGroupName, queueOffsetId, offsetVersion }
      const request = { queueId, offsetStart, topicName, ...owner, maxBytes, waitMs }
      const answer = await api.pullData(request, { timeoutMs: requestTimeoutMs + waitMs, signal })
      deps.onVersion?.(consumerGroupName, answer.version)
      return answer.fenced ? answer : expectSuccess('pullData', answer)
    },
    sendFailures(request, signal) {
      const consumerId = deps.consumerId()
      return api.publishAndUpdateResultFailMsg({ consumerId, ...request }, { timeoutMs: requestTimeoutMs, signal })
    },
    async commit(queueOffsets, givesUp, signal) {
      const request = { queueOffsets, flag: givesUp ? (1 as const) : (0 as const) }
      const answer = await api.commitOffset(request, { timeoutMs: requestTimeoutMs, signal })
      const { versions = {} } = expectSuccess('commitOffset', answer)
      for (const [groupName, version] of Object.entries(versions)) deps.onVersion?.(groupName, version)
      return answer
    },
  }
}
