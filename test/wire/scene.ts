import assert from 'node:assert/strict'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import type { Service } from './service.ts'

/** What every request of a PMQ client carries. */
export const base = { lan: 'java', sdkVersion: '5.5.1', clientIp: '10.1.1.1' }

export async function createTopic(service: Service, name: string, queues = 1): Promise<number[]> {
  const topic = await service.call('createTopic', { name, queues })
  return topic.queues.map(queue => queue.queueId)
}

/** A group that is subscribed to topics, which exist. */
export async function createGroup(service: Service, groupName: string, topicNames: string[]): Promise<void> {
  await service.call('createGroup', { name: groupName })
  for (const topicName of topicNames) await service.call('subscribe', {}, { groupName, topicName })
}

export async function register(service: Service, name = '10.1.1.1|28959|5298|8087'): Promise<number> {
  const { id } = await service.call('register', { ...base, name })
  assert.ok(id)
  return id
}

/** Registers a consumer that handles these topics of a group. */
export async function join(
  service: Service,
  groupName: string,
  topicNames: string[],
  consumerName?: string,
): Promise<number> {
  const consumerId = await register(service, consumerName)
  const request = { ...base, consumerId, consumerName: 'c', consumerGroupNames: { [groupName]: topicNames } }
  const { suc, msg } = await service.call('registerConsumerGroup', request)
  assert.equal(suc, true, msg)
  return consumerId
}

/** A topic `t1` with so many queues, a group `g1` that is subscribed to it, and a consumer that owns all of it. */
export async function consume(service: Service, queues = 1): Promise<{ consumerId: number; queueIds: number[] }> {
  const queueIds = await createTopic(service, 't1', queues)
  await createGroup(service, 'g1', ['t1'])
  return { consumerId: await join(service, 'g1', ['t1']), queueIds }
}

/** The queues of topics that a consumer owns in a group, in order of their ids, those of fail topics, and the group's version. */
export async function assignment(
  service: Service,
  consumerId: number,
  groupName = 'g1',
): Promise<{ queues: AssignedQueue[]; failQueues: AssignedQueue[]; version: number }> {
  // A read of a group is shared for so long, and need not know of the last commits.
  service.clock.advance(100)
  const request = { ...base, consumerId, consumerGroupVersion: { [groupName]: 0 } }
  const { consumerGroups } = await service.call('getConsumerGroupPolling', request)
  const group = consumerGroups?.[groupName]
  assert.ok(group)
  const [queues = [], failQueues = []] = [1, 2].map(type => {
    return Object.values(group.queues).filter(({ topicType }) => topicType === type)
  })
  return { queues, failQueues, version: group.meta.version }
}

export async function firstQueue(service: Service, consumerId: number): Promise<AssignedQueue> {
  const [queue] = (await assignment(service, consumerId)).queues
  assert.ok(queue)
  return queue
}

/** Publishes bodies to one queue of `t1`, and has to succeed. */
export async function publish(service: Service, bodies: string[], queueId?: number): Promise<void> {
  const msgs = bodies.map(body => ({ body, ...(queueId !== undefined && { partitionInfo: { queueId } }) }))
  const { suc, msg } = await service.call('publish', { ...base, topicName: 't1', msgs })
  assert.equal(suc, true, msg)
}

/** What PMQ's client is given for the window from `offsetStart` (exclusive) to `offsetEnd` (inclusive). */
export async function pull(service: Service, queueId: number, offsetStart: number, offsetEnd: number) {
  const request = { ...base, queueId, offsetStart, offsetEnd, topicName: 't1', consumerGroupName: 'g1' }
  const { suc, msg, msgs } = await service.call('pullData', request)
  assert.equal(suc, true, msg)
  assert.ok(msgs)
  return msgs
}
