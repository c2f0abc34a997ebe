import type { GroupView, TopicView } from '../../core/protocol/admin.ts'
import type { EndpointName } from '../../core/protocol/endpoints.ts'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import { base } from './scene.ts'
import type { Parameters, Service } from './service.ts'

/** What operators ask of a service while it runs, and what consumers make of it. */

export const viewTopic = (service: Service, topicName = 't1'): Promise<TopicView> =>
  service.call('getTopicView', undefined, { topicName })

/** A group without its places in fail topics. */
export async function viewGroup(service: Service, groupName = 'g1'): Promise<GroupView> {
  const view = await service.call('getGroup', undefined, { groupName })
  return { ...view, queues: ordinary(view.queues) }
}

/** Those that are not of fail topics. */
export const ordinary = (queues: GroupView['queues']) => queues.filter(queue => queue.originTopicName === undefined)

/** Adds queues to a topic; answers with their ids. */
export async function addQueues(service: Service, count = 1, topicName = 't1'): Promise<number[]> {
  const { queues } = await service.call('addQueues', { count }, { topicName })
  return queues.slice(-count).map(queue => queue.queueId)
}

export const setReadOnly = (service: Service, queueId: number, readOnly = true, topicName = 't1') =>
  service.call('changeQueue', { readOnly }, { topicName, queueId: String(queueId) })

export const removeQueue = (service: Service, queueId: number, topicName = 't1') =>
  service.call('removeQueue', undefined, { topicName, queueId: String(queueId) })

/** Makes a queue read-only, waits for as long as it takes, and removes it. */
export async function drainAndRemove(service: Service, queueId: number): Promise<void> {
  await setReadOnly(service, queueId)
  service.clock.advance(60_000)
  await removeQueue(service, queueId)
}

/** The status, code and text of an error. */
export async function refusal(service: Service, endpoint: EndpointName, request: unknown, parameters?: Parameters) {
  const { status, json } = await service.send(endpoint, request, parameters)
  return [status, json.code, json.message]
}

/** Records how far a queue is consumed. */
export async function commit(service: Service, queue: AssignedQueue, offset: number, flag: 0 | 1 = 0) {
  const { queueOffsetId, offsetVersion, consumerGroupName, topicName } = queue
  const entry = { queueOffsetId, offsetVersion, offset, consumerGroupName, topicName }
  const { results } = await service.call('commitOffset', { ...base, queueOffsets: [entry], flag })
  return results?.[0]?.outcome
}

/** The bodies of a queue behind the offset that its owner was told. */
export async function bodiesOf(service: Service, queue: AssignedQueue): Promise<string[]> {
  const { queueId, offset, topicName, consumerGroupName } = queue
  const request = { ...base, queueId, offsetStart: offset, offsetEnd: offset + 100, topicName, consumerGroupName }
  const { msgs = [] } = await service.call('pullData', request)
  return msgs.map(message => message.body)
}
