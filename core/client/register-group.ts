import type { Core } from '../core.ts'
import { askRebalance } from '../group/ask.ts'
import { ensureCopy, NameTakenError, removeGroup } from '../group/copies.ts'
import { consumerCopyName, kindOf, noSubEnv, subEnvCopyName } from '../group/copy-names.ts'
import { joinGroup, letGo } from '../group/join.ts'
import type { Consumer, Group, Member } from '../model.ts'
import { limits } from '../protocol/limits.ts'
import type { RegisterGroupRequest, RegisterGroupResponse } from '../protocol/membership.ts'
import { StoreError } from '../store.ts'
import { findTopicWith, isName, readGroup } from './find.ts'

/** Joins groups with the topics that the consumer can handle. All of the groups must be there to be joined, else it joins none. */
export async function registerConsumerGroup(core: Core, request: RegisterGroupRequest): Promise<RegisterGroupResponse> {
  const topicsByGroup = Object.entries(request.consumerGroupNames ?? {})
  const groupNames = topicsByGroup.map(([groupName]) => groupName)
  if (groupNames.length === 0) return refused('消费者组不能为空！')
  if (groupNames.length > limits.maxGroupsPerConsumer) {
    return refused(`${groupNames.length} groups; at most ${limits.maxGroupsPerConsumer} are accepted`)
  }
  const consumerId = request.consumerId ?? 0
  const [consumer] = await core.store.readConsumers([consumerId])
  if (!consumer) return refused(`ConsumerId_${consumerId}不存在！`)

  // Not from memory: a group may have been created a moment ago.
  const read = await Promise.all(groupNames.map(name => readRecord(core, name)))
  // A copy for one consumer is nobody else's.
  const found = read.map(group => (group && kindOf(group) === 'group' ? group : undefined))
  const groups = found.filter(group => group !== undefined)
  if (groups.length === 0) return refused(`${groupNames.join('.')}不存在`)
  const unknown = groupNames.find((_, i) => found[i] === undefined)
  if (unknown !== undefined) return refused(`consumergroup_${unknown}不存在`)
  const claimed = groups.find(group => group.mode === 'claimed')
  if (claimed) return refused(`group ${claimed.name} has no members: its queues are claimed`)

  const names = new Map<Group, string>()
  const replaced = new Map<number, Member>()
  for (const group of groups) {
    const joined = await joinOne(core, request, consumer, group, topicsOf(request, group))
    if ('suc' in joined) return joined
    names.set(group, joined.name)
    for (const member of joined.replaced) replaced.set(member.consumerId, member)
  }
  // Not before: in the groups that were still to be joined their queues would have gone to others.
  // One that has not stopped in order may have had something in hand.
  for (const former of replaced.values()) await letGo(core, former.consumerId, former.groupName, 'lost')

  const newNames: [string, string][] = []
  const notSubscribed: [string, string[]][] = []
  for (const [group, name] of names) {
    if (name !== group.name) newNames.push([group.name, name])
    const missing = await findMissing(core, group.name, topicsOf(request, group))
    if (missing.length > 0) notSubscribed.push([name, missing])
  }
  // Not by assignment: a group may be called `__proto__`.
  const consumerGroupNameNew = Object.fromEntries(newNames)
  return {
    suc: true,
    broadcastConsumerGroupName: consumerGroupNameNew,
    consumerGroupNameNew,
    ...(notSubscribed.length > 0 && { notSubscribed: Object.fromEntries(notSubscribed) }),
  }
}

const topicsOf = (request: RegisterGroupRequest, { name }: Group) =>
  (request.consumerGroupNames?.[name] ?? []).filter(isName)

const refused = (msg: string): RegisterGroupResponse => ({ suc: false, msg })

/** Joins one group, or its copy for the consumer's sub-environment; answers with the name that is the group's for it. */
async function joinOne(
  core: Core,
  request: RegisterGroupRequest,
  consumer: Consumer,
  origin: Group,
  topicNames: string[],
): Promise<{ name: string; replaced: Member[] } | RegisterGroupResponse> {
  const subEnv = request.subEnv?.toLowerCase()
  let group = origin
  if (core.settings.subEnvironments && subEnv && subEnv !== noSubEnv) {
    const copyName = subEnvCopyName(origin.name, subEnv)
    if (!isName(copyName) || copyName.length > limits.maxCopyNameLength)
      return refused(`sub-environment ${subEnv}: ${copyName} cannot be the name of a group`)
    try {
      group = await ensureCopy(core, origin, copyName, { groupName: origin.name, subEnv })
    } catch (error) {
      if (error instanceof NameTakenError) return refused(error.message)
      throw error
    }
  }
  const { name: groupName } = group
  const { consumerId } = consumer
  const instanceId = request.instanceId ?? undefined
  const isReturning = request.returning === true
  const joined = await joinGroup(core, { groupName, consumer, topicNames, instanceId, isReturning })
  if (joined.outcome !== 'joined') return refuseJoin(core, joined.outcome, consumerId, groupName, instanceId)
  const { replaced } = joined
  // It was removed meanwhile.
  const gone = async (): Promise<RegisterGroupResponse> => {
    await core.store.leaveGroup(groupName, consumerId)
    return refused(`consumergroup_${groupName}不存在`)
  }
  if (group.mode !== 'broadcast') return (await askRebalance(core, groupName)) ? { name: groupName, replaced } : gone()
  // Its queues are made here and now; the tick looks after its members.
  await core.store.askRebalance(groupName)
  const copyName = consumerCopyName(groupName, consumerId)
  await ensureCopy(core, group, copyName, { groupName, consumerId })
  // What was changed of the group meanwhile the next rebalance brings to the copy: who changed it need not have met it.
  if (await core.store.askRebalance(groupName)) return { name: copyName, replaced }
  await removeGroup(core, copyName)
  return gone()
}

async function refuseJoin(
  core: Core,
  outcome: 'outrun' | 'unknown_group' | 'unknown_consumer',
  consumerId: number,
  groupName: string,
  instanceId: string | undefined,
): Promise<RegisterGroupResponse> {
  if (outcome === 'unknown_group') return refused(`consumergroup_${groupName}不存在`)
  if (outcome === 'unknown_consumer') return refused(`ConsumerId_${consumerId}不存在！`)
  // It is to end, and hears that in any case: what fails here is done when it has been silent for long.
  try {
    await letGo(core, consumerId, groupName, 'left')
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
  }
  return { ...refused(`another consumer has taken the place ${instanceId} in group ${groupName}`), replaced: true }
}

const readRecord = async (core: Core, groupName: string) =>
  isName(groupName)
    ? ((await core.store.readGroupRecord(groupName)) ?? (await readGroup(core, groupName))?.group)
    : undefined

/** The topics that a consumer handles and its group does not subscribe to. */
async function findMissing(core: Core, groupName: string, topicNames: string[]): Promise<string[]> {
  const subscribed = await Promise.all(
    topicNames.map(topicName => findTopicWith(core, topicName, topic => topic.groupNames.includes(groupName))),
  )
  return topicNames.filter((_, i) => subscribed[i] === undefined)
}
