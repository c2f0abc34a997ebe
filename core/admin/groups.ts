import { isName, readGroup } from '../client/find.ts'
import { type Core, groupHasChanged } from '../core.ts'
import { addOffset } from '../group/offsets.ts'
import type { GroupSnapshot, SubscriptionSettings } from '../model.ts'
import type { CreateGroupRequest, GroupListView, GroupView, SubscribeRequest } from '../protocol/admin.ts'
import { PmqError } from '../protocol/errors.ts'
import { forEachOf } from './for-each-of.ts'
import { listAll } from './list.ts'
import { topicNotFound } from './topics.ts'

/** PMQ's defaults, where they make sense: 5 handler calls at once, one message each, pulls of 50, pauses up to 5 s. */
export const defaultSubscription: SubscriptionSettings = {
  threadSize: 5,
  consumerBatchSize: 1,
  pullBatchSize: 50,
  maxPullTimeSeconds: 5,
}

export async function createGroup(core: Core, { name }: CreateGroupRequest): Promise<GroupView> {
  const outcome = await core.store.createGroup({
    name,
    rbVersion: 0,
    metaVersion: 1,
    version: 1,
    rebalanceAsked: 0,
    rebalanceDone: 0,
    rebalancedAtMs: 0,
    rebalancedVersion: 0,
    createdAtMs: core.clock.now(),
  })
  if (outcome === 'exists') throw new PmqError('already_exists', `group ${name} exists already`)
  return getGroup(core, name)
}

export async function listGroups(core: Core): Promise<GroupListView> {
  return { groups: await listAll(page => core.store.listGroups(page)) }
}

/**
 * Subscribes a group to a topic: it is handed every message published from now on. Where it is subscribed already, the
 * settings are changed to those given, and its consumers take them up while they run.
 */
export async function subscribe(
  core: Core,
  groupName: string,
  topicName: string,
  request: SubscribeRequest,
): Promise<GroupView> {
  const group = await requireGroup(core, groupName)
  const topic = isName(topicName) ? await core.store.readTopic(topicName) : undefined
  if (!topic) throw topicNotFound(topicName)
  const current = group.subscriptions.find(subscription => subscription.topicName === topicName)
  const settings = withDefaults(request, current ?? defaultSubscription)
  if (current) {
    await core.store.updateSubscription(groupName, topicName, settings)
  } else {
    const firstId = await core.store.takeIds('queueOffset', topic.queues.length)
    await forEachOf(topic.queues, async (queue, i) => {
      const newest = (await core.findEnd(topicName, queue.queueId)) - 1
      await addOffset(core, groupName, queue, firstId + i, newest)
    })
    await core.store.createSubscription({ ...settings, groupName, topicName, topicId: topic.topic.topicId })
    await core.bus.groupChanged(groupName)
  }
  core.topics.forget(topicName)
  groupHasChanged(core, groupName)
  return getGroup(core, groupName)
}

function withDefaults(request: SubscribeRequest, defaults: SubscriptionSettings): SubscriptionSettings {
  return {
    threadSize: request.threadSize ?? defaults.threadSize,
    consumerBatchSize: request.consumerBatchSize ?? defaults.consumerBatchSize,
    pullBatchSize: request.pullBatchSize ?? defaults.pullBatchSize,
    maxPullTimeSeconds: request.maxPullTimeSeconds ?? defaults.maxPullTimeSeconds,
  }
}

/** A group that has to exist. */
export async function requireGroup(core: Core, groupName: string): Promise<GroupSnapshot> {
  const snapshot = await readGroup(core, groupName)
  if (!snapshot) throw new PmqError('not_found', `there is no group ${groupName}`)
  return snapshot
}

export async function getGroup(core: Core, groupName: string): Promise<GroupView> {
  return toView(core, await requireGroup(core, groupName))
}

async function toView(core: Core, { group, subscriptions, offsets, members }: GroupSnapshot): Promise<GroupView> {
  const { name, rbVersion, metaVersion, version } = group
  const names = new Map(members.map(member => [member.consumerId, member.consumerName]))
  const [consumers, ends] = await Promise.all([
    core.store.readConsumers(members.map(member => member.consumerId)),
    Promise.all(offsets.map(offset => core.findEnd(offset.topicName, offset.queueId))),
  ])
  const heartbeats = new Map(consumers.map(consumer => [consumer.consumerId, consumer.heartbeatAtMs]))
  return {
    name,
    rbVersion,
    metaVersion,
    version,
    subscriptions: subscriptions.map(subscription => ({
      topicName: subscription.topicName,
      ...withDefaults({}, subscription),
    })),
    members: members.map(({ consumerId, consumerName, topicNames }) => {
      const heartbeatAtMs = heartbeats.get(consumerId)
      return { consumerId, consumerName, topics: topicNames, ...(heartbeatAtMs !== undefined && { heartbeatAtMs }) }
    }),
    queues: offsets.map(({ topicName, queueId, queueOffsetId, offset, offsetVersion, consumerId, isStopped }, i) => {
      const consumerName = consumerId === 0 ? undefined : (names.get(consumerId) ?? `consumer ${consumerId}`)
      const lag = Math.max(0, (ends[i] ?? 1) - 1 - offset)
      const owner = consumerName && { consumerName }
      return { topicName, queueId, queueOffsetId, offset, offsetVersion, isStopped, lag, ...owner }
    }),
  }
}
