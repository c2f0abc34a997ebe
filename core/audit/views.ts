import { listFailed } from '../admin/failed.ts'
import { readWorking } from '../admin/group-view.ts'
import { viewTarget } from '../admin/target-view.ts'
import { isName, readGroup } from '../client/find.ts'
import type { Core } from '../core.ts'
import { originOf } from '../group/fail-topics.ts'
import type { Group, GroupSnapshot, QueueOffset, Subscription } from '../model.ts'
import { readTarget } from '../notify/change-target.ts'
import type { TargetOwner } from '../notify/target.ts'
import type { Selection } from '../protocol/admin.ts'
import type { Audited } from '../protocol/endpoints.ts'
import { PmqError } from '../protocol/errors.ts'

/** What an act names: by its path, and by its request. */
export type ActNames = { parameters: Record<string, string>; request: unknown }

type AuditedThing = {
  /** What the entries are found by: what the act names, of these. */
  of: 'topic' | 'group' | 'target'
  /**
   * What is there of it, without secrets and messages. Undefined: nothing. Names that users give are values, never fields:
   * see `redact.ts`. Reads what it needs anew: one read of the topic or the group, for broadcast groups one for each copy.
   */
  view: (core: Core, names: ActNames & { name: string }) => Promise<object | undefined>
}

/** What endpoints say that they change, and how that looks before and after. */
export const auditedThings: Record<Audited, AuditedThing> = {
  topic: { of: 'topic', view: (core, { name }) => viewTopic(core, name) },
  group: { of: 'group', view: ofGroup(viewSettings) },
  groupWithOffsets: {
    of: 'group',
    view: ofGroup(async (snapshot, _names, core) => ({
      ...(await viewSettings(snapshot)),
      offsets: await viewOffsets(core, snapshot, () => true),
    })),
  },
  subscription: { of: 'group', view: ofGroup(viewSubscription) },
  subscriptionWithOffsets: {
    of: 'group',
    view: ofGroup(async (snapshot, names, core) => ({
      ...(await viewSubscription(snapshot, names)),
      offsets: await viewOffsets(core, snapshot, place => originOf(place) === names.parameters.topicName),
    })),
  },
  offsets: {
    of: 'group',
    view: ofGroup(async (snapshot, { request }, core) => ({
      offsets: await viewOffsets(core, snapshot, isOf((request as { of: Selection }).of)),
    })),
  },
  target: {
    of: 'group',
    view: (core, { name: groupName, parameters }) => viewTargetOf(core, { groupName }, parameters),
  },
  alarmTarget: { of: 'target', view: (core, { parameters }) => viewTargetOf(core, 'alarms', parameters) },
  // Which of them the act is about, and why, says its request.
  failedMessages: { of: 'group', view: (core, { name, parameters }) => viewFailed(core, name, parameters.topicName) },
}

async function viewTargetOf(core: Core, owner: TargetOwner, { targetName = '' }: Record<string, string>) {
  if ((owner !== 'alarms' && !isName(owner.groupName)) || !isName(targetName)) return undefined
  const target = await readTarget(core, { owner, name: targetName })
  if (!target) return undefined
  const { secrets, ...view } = viewTarget(target)
  return { ...view, signedBy: secrets.map(({ secretId }) => secretId) }
}

/** How many there are of each state, of the newest 1,000: some 250 read units for records of 1 KB. */
async function viewFailed(core: Core, groupName: string, topicName = '') {
  if (!isName(groupName) || !isName(topicName)) return undefined
  try {
    const { counts } = await listFailed(core, groupName, topicName, { order: 'newest', limit: 1, counts: true })
    return { topicName, failed: counts }
  } catch (error) {
    // There is no such subscription, which the act itself will say.
    if (error instanceof PmqError && error.code === 'not_found') return undefined
    throw error
  }
}

async function viewTopic(core: Core, topicName: string) {
  const snapshot = isName(topicName) ? await core.store.readTopic(topicName) : undefined
  if (!snapshot) return undefined
  const queues = snapshot.queues.map(({ queueId, readOnlySinceMs }) => ({
    queueId,
    ...(readOnlySinceMs !== undefined && { readOnlySinceMs }),
  }))
  const { additions: _additions, ...topic } = snapshot.topic
  return { ...topic, queues, groups: snapshot.groupNames }
}

function ofGroup(
  view: (snapshot: GroupSnapshot, names: ActNames, core: Core) => Promise<object>,
): AuditedThing['view'] {
  return async (core, { name, ...names }) => {
    const snapshot = await readGroup(core, name)
    return snapshot && view(snapshot, names, core)
  }
}

async function viewSettings({ group, subscriptions }: GroupSnapshot) {
  return { ...withoutProgress(group), subscriptions: subscriptions.map(withoutIds) }
}

/** Counters that rise with whatever happens say nothing of an act. */
function withoutProgress(group: Group) {
  const { rbVersion: _rb, metaVersion: _meta, version: _version, rebalancedVersion: _told, ...rest } = group
  const { rebalanceAsked: _asked, rebalanceDone: _done, rebalancedAtMs: _at, ...settings } = rest
  return settings
}

function withoutIds(subscription: Subscription) {
  const { groupName: _group, topicId: _id, failTopicId: _failId, ...settings } = subscription
  return settings
}

async function viewSubscription({ subscriptions }: GroupSnapshot, { parameters }: ActNames) {
  const subscription = subscriptions.find(({ topicName }) => topicName === parameters.topicName)
  return { subscription: subscription ? withoutIds(subscription) : null }
}

/** For each topic: queue → offset and its version. In a broadcast group each member has its own. */
async function viewOffsets(core: Core, snapshot: GroupSnapshot, isMeant: (place: QueueOffset) => boolean) {
  const working = await readWorking(core, snapshot)
  return working.flatMap(({ group, offsets }) => {
    const byTopic = Map.groupBy(offsets.filter(isMeant), ({ topicName }) => topicName)
    return Array.from(byTopic, ([topicName, places]) => ({
      ...(group.name !== snapshot.group.name && { groupName: group.name }),
      topicName,
      queues: Object.fromEntries(places.map(viewPlace)),
    }))
  })
}

const viewPlace = ({ queueId, offset, offsetVersion, isStopped }: QueueOffset) => [
  queueId,
  { offset, offsetVersion, ...(isStopped && { isStopped }) },
]

/** With the places in fail topics, whether the act means them too or not. */
const isOf = (of: Selection) => (place: QueueOffset) => {
  if (of === 'all') return true
  return 'topicName' in of
    ? place.topicName === of.topicName || originOf(place) === of.topicName
    : place.queueId === of.queueId
}
