import assert from 'node:assert/strict'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import { base, createTopic, publish } from './scene.ts'
import type { Service } from './service.ts'

/** A topic `t1` with so many queues, and a claimed group `g1` that is subscribed to it. */
export async function openClaimed(service: Service, queues = 3): Promise<number[]> {
  const queueIds = await createTopic(service, 't1', queues)
  await service.call('createGroup', { name: 'g1', mode: 'claimed' })
  await service.call('subscribe', {}, { groupName: 'g1', topicName: 't1' })
  return queueIds
}

/** Puts one message into each of these queues. */
export async function fill(service: Service, queueIds: number[]): Promise<void> {
  for (const queueId of queueIds) await publish(service, ['a'], queueId)
}

/** What a claimant gets of `g1`: by default as much as there is, for a minute. */
export async function claim(service: Service, claimant: string, request: object = {}): Promise<AssignedQueue[]> {
  const asked = { ...base, consumerGroupName: 'g1', claimant, maxQueues: 100, ...request }
  const { suc, msg, queues } = await service.call('claimQueues', asked)
  assert.equal(suc, true, msg)
  return Object.values(queues ?? {})
}

export async function claimOne(service: Service, claimant: string, request: object = {}): Promise<AssignedQueue> {
  const [queue] = await claim(service, claimant, { maxQueues: 1, ...request })
  assert.ok(queue, 'there is nothing to claim')
  return queue
}

/** What became of a commit of one queue; with `flag: 1` it gives the queue up. */
export async function commit(service: Service, queue: AssignedQueue, offset: number, flag: 0 | 1 = 0) {
  const { queueOffsetId, offsetVersion } = queue
  const entry = { queueOffsetId, offsetVersion, offset, consumerGroupName: 'g1', topicName: 't1' }
  const { results } = await service.call('commitOffset', { ...base, queueOffsets: [entry], flag })
  return results?.[0]?.outcome
}

/** What became of the renewal of one queue. */
export async function renew(service: Service, { queueOffsetId, offsetVersion }: AssignedQueue, leaseMs?: number) {
  const queues = [{ queueOffsetId, offsetVersion }]
  const { results } = await service.call('renewClaims', { ...base, consumerGroupName: 'g1', queues, leaseMs })
  assert.equal(results?.length, 1)
  return results[0]
}

export const idsOf = (queues: AssignedQueue[]) => queues.map(queue => queue.queueId).toSorted((a, b) => a - b)
