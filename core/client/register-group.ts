import type { Core } from '../core.ts'
import { limits } from '../protocol/limits.ts'
import type { RegisterGroupRequest, RegisterGroupResponse } from '../protocol/membership.ts'
import { findGroup, isName } from './find.ts'

/** Joins groups with the topics that the consumer can handle. All of the groups must exist, else it joins none. */
export async function registerConsumerGroup(core: Core, request: RegisterGroupRequest): Promise<RegisterGroupResponse> {
  const topicsByGroup = Object.entries(request.consumerGroupNames ?? {})
  const groupNames = topicsByGroup.map(([groupName]) => groupName)
  if (groupNames.length === 0) return { suc: false, msg: '消费者组不能为空！' }
  if (groupNames.length > limits.maxGroupsPerConsumer) {
    return { suc: false, msg: `${groupNames.length} groups; at most ${limits.maxGroupsPerConsumer} are accepted` }
  }
  const consumerId = request.consumerId ?? 0
  const [consumer] = await core.store.readConsumers([consumerId])
  if (!consumer) return { suc: false, msg: `ConsumerId_${consumerId}不存在！` }

  const groups = await Promise.all(groupNames.map(name => findGroup(core, name)))
  const unknown = groupNames.filter((_, i) => groups[i] === undefined)
  if (unknown.length === groupNames.length) return { suc: false, msg: `${groupNames.join('.')}不存在` }
  if (unknown.length > 0) return { suc: false, msg: `consumergroup_${unknown[0]}不存在` }

  for (const [groupName, topicNames] of topicsByGroup) {
    const outcome = await core.store.joinGroup({
      groupName,
      consumerId,
      consumerName: consumer.name,
      // What no topic can be called is no topic of the group's either.
      topicNames: (topicNames ?? []).filter(isName),
      joinedAtMs: core.clock.now(),
    })
    if (outcome === 'unknown_group') return { suc: false, msg: `consumergroup_${groupName}不存在` }
    if (outcome === 'unknown_consumer') return { suc: false, msg: `ConsumerId_${consumerId}不存在！` }
    await core.bus.groupChanged(groupName)
  }
  return { suc: true, broadcastConsumerGroupName: {}, consumerGroupNameNew: {} }
}
