import assert from 'node:assert/strict'
import type { FailedView, ListFailedRequest } from '../../core/protocol/failed.ts'
import type { FailuresRequest } from '../../core/protocol/failures.ts'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import { assignment, base, consume, publish } from './scene.ts'
import type { Service } from './service.ts'

/** A group whose consumer fails, step by step. */

export const failedOf = { groupName: 'g1', topicName: 't1' }
export const failName = 'g1_t1_fail'

export type Failing = Awaited<ReturnType<typeof startFailing>>

/** A consumer of `t1` that says itself what it has failed to handle, and what it has handled after all. */
export async function startFailing(service: Service) {
  const { consumerId } = await consume(service)
  const { queues, failQueues } = await assignment(service, consumerId)
  const [own] = queues
  assert.ok(own)

  const named = ({ consumerGroupName, queueOffsetId, offsetVersion, queueId }: AssignedQueue) => {
    return { consumerId, consumerGroupName, queueOffsetId, offsetVersion, queueId }
  }
  const queueOf = (queueId: number) => [own, ...failQueues].find(queue => queue.queueId === queueId) ?? assert.fail()
  const send = (request: FailuresRequest) => service.call('publishAndUpdateResultFailMsg', { ...base, ...request })

  return {
    consumerId,
    own,
    failQueues,
    named,
    send,
    /** Fails with the message at a place, whose body and count it has from there. */
    async fail({ queueId, offset }: { queueId: number; offset: number }, fields: Partial<FailuresRequest> = {}) {
      const { topicName } = queueOf(queueId)
      const asked = { queueId, offsetStart: offset - 1, offsetEnd: offset, topicName, consumerGroupName: 'g1' }
      const [message] = (await service.call('pullData', { ...base, ...asked })).msgs ?? []
      assert.ok(message)
      const { id, body, bizId, retryCount } = message
      const failMsg = { topicName: failName, msgs: [{ id, body, bizId, retryCount: retryCount + 1 }] }
      return send({ ...named(queueOf(queueId)), failMsg, ...fields })
    },
    confirm: ({ queueId, offset }: { queueId: number; offset: number }) =>
      send({ ...named(queueOf(queueId)), ids: [offset] }),
    async commit({ queueId, offset }: { queueId: number; offset: number }) {
      const { queueOffsetId, offsetVersion, consumerGroupName, topicName } = queueOf(queueId)
      const entry = { queueOffsetId, offsetVersion, offset, consumerGroupName, topicName }
      await service.call('commitOffset', { ...base, queueOffsets: [entry], flag: 0 })
    },
    /** Publishes a message and fails with it as often as it takes to make a dead letter of it. */
    async exhaust(body: string): Promise<FailedView> {
      await publish(service, [body])
      const { queues: ends } = await service.call('getTopicView', undefined, { topicName: 't1' })
      let place = { queueId: own.queueId, offset: (ends[0]?.nextOffset ?? 1) - 1 }
      for (;;) {
        service.clock.advance(1_000)
        await this.fail(place, { cause: { kind: 'threw', text: `Error: ${body}` } })
        const [record] = await list(service, { limit: 1 })
        assert.ok(record)
        if (record.state === 'exhausted') return record
        place = record.place
      }
    },
  }
}

export async function list(service: Service, query: Partial<ListFailedRequest> = {}): Promise<FailedView[]> {
  return (await service.call('listFailed', query, failedOf)).failed
}

export async function only(service: Service): Promise<FailedView> {
  const [record, ...others] = await list(service)
  assert.ok(record)
  assert.deepEqual(others, [])
  return record
}

export const resend = (service: Service, request: object) => service.call('resendFailed', request, failedOf)
export const drop = (service: Service, request: object) =>
  service.call('dropFailed', { reason: 'why not', ...request }, failedOf)
