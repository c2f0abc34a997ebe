import { isName } from '../client/find.ts'
import { type Core, groupHasChanged } from '../core.ts'
import { alignCopies } from '../group/copies.ts'
import { failTopicName, hasFailTopics, lacksFailTopic, openFailTopic } from '../group/fail-topics.ts'
import { addFailTopic, addSubscription, endSubscription, settingsOf } from '../group/subscriptions.ts'
import type { GroupSnapshot, SubscriptionSettings, TopicSnapshot } from '../model.ts'
import { alignNotifies } from '../notify/align.ts'
import type { GroupView, SubscribeRequest } from '../protocol/admin.ts'
import { PmqError } from '../protocol/errors.ts'
import { getGroup, requireGroup } from './group-view.ts'
import { requireTopic } from './topics.ts'

/**
 * PMQ's defaults, where they make sense: 5 handler calls at once, one message each, pulls of 50, pauses up to 5 s; three
 * retries a minute apart.
 */
export const defaultSubscription: SubscriptionSettings = {
  threadSize: 5,
  consumerBatchSize: 1,
  pullBatchSize: 50,
  maxPullTimeSeconds: 5,
  tag: '',
  delayProcessTimeSeconds: 0,
  timeoutSeconds: 0,
  retryCount: 3,
  retryDelaySeconds: 60,
  retryBackoffRate: 1,
  maxRetryDelaySeconds: 3600,
  retryInPlace: false,
  trace: false,
  maxLag: 0,
  maxLagSeconds: 0,
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
  const snapshot = await requireOriginal(core, groupName)
  const topic = await requireTopic(core, topicName)
  const { failOf } = topic.topic
  if (failOf) {
    const { groupName: owner, topicName: origin } = failOf
    throw new PmqError(
      'conflict',
      `${topicName} is the fail topic of group ${owner} for topic ${origin}, and goes with it`,
    )
  }
  const current = snapshot.subscriptions.find(subscription => subscription.topicName === topicName)
  const settings = withSettings(request, current ? settingsOf(current) : defaultSubscription)
  const failTopic =
    current && !lacksFailTopic(snapshot.group, current) ? undefined : await makeFailTopic(core, snapshot, topic)
  // Whoever dies before the copies have them leaves a rebalance that is owed, which passes them on.
  if (current && snapshot.copies.length > 0) await core.store.askRebalance(groupName)
  const outcome = !current
    ? await addSubscription(core, snapshot, topic, failTopic, settings)
    : failTopic
      ? await addFailTopic(core, snapshot, current, failTopic, settings)
      : await core.store.updateSubscription(groupName, topicName, settings)
  if (outcome === 'unknown_topic') {
    throw new PmqError('conflict', `topic ${topicName} or its fail topic is being removed: remove it, or try again`)
  }
  await alignNotifies(core, groupName)
  await passOn(core, groupName, topicName)
  return getGroup(core, groupName)
}

async function makeFailTopic(
  core: Core,
  { group }: GroupSnapshot,
  topic: TopicSnapshot,
): Promise<TopicSnapshot | undefined> {
  const made = await openFailTopic(core, group, topic)
  if (made === undefined && hasFailTopics(group)) {
    const name = failTopicName(group.name, topic.topic.name)
    throw new PmqError('conflict', `the fail topic ${name} is that of another subscription: choose another group name`)
  }
  return made
}

function withSettings(request: SubscribeRequest, current: SubscriptionSettings): SubscriptionSettings {
  const settings: SubscriptionSettings = Object.assign({}, current, request)
  const { tag, retryDelaySeconds, maxRetryDelaySeconds } = settings
  if (retryDelaySeconds > maxRetryDelaySeconds) {
    const both = `retryDelaySeconds (${retryDelaySeconds}) must not be above maxRetryDelaySeconds (${maxRetryDelaySeconds})`
    throw new PmqError('bad_request', both)
  }
  // A store need not take what is no Unicode: half a surrogate pair is replaced.
  return { ...settings, tag: tag.toWellFormed() }
}

/**
 * Ends a subscription, and forgets how far the group was. Its consumers hear of it at once; what they have in hand they may
 * finish. Repeating it finishes what an earlier call has begun.
 */
export async function unsubscribe(core: Core, groupName: string, topicName: string): Promise<GroupView> {
  const snapshot = await requireOriginal(core, groupName)
  const notSubscribed = new PmqError('not_found', `group ${groupName} does not subscribe to topic ${topicName}`)
  if (!isName(topicName)) throw notSubscribed
  const isEnded = await endSubscription(core, snapshot, topicName)
  // An earlier call may have come no further than to here.
  const isPassedOn = await passOn(core, groupName, topicName)
  if (isEnded || isPassedOn) return getGroup(core, groupName)
  throw notSubscribed
}

/** Lets a group's copies and its consumers know of a change. True: a copy did not know yet. */
async function passOn(core: Core, groupName: string, topicName: string): Promise<boolean> {
  const changed = await requireGroup(core, groupName)
  const hasChanged = await alignCopies(core, changed)
  await core.bus.groupChanged(groupName)
  core.topics.forget(topicName)
  groupHasChanged(core, groupName)
  return hasChanged
}

/** A group that is no copy: what a copy subscribes to follows from its origin. */
async function requireOriginal(core: Core, groupName: string): Promise<GroupSnapshot> {
  const snapshot = await requireGroup(core, groupName)
  const { origin } = snapshot.group
  if (origin === undefined) return snapshot
  throw new PmqError('conflict', `group ${groupName} is a copy of ${origin.groupName}: change that one's subscriptions`)
}
