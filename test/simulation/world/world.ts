import { subscribe } from '../../../core/admin/subscriptions.ts'
import { defaultSettings } from '../../../core/core.ts'
import { newGroup } from '../../../core/group/copies.ts'
import { failTopicName } from '../../../core/group/fail-topics.ts'
import type { GroupSnapshot, SubscriptionSettings } from '../../../core/model.ts'
import type { Clock } from '../../../core/protocol/clock.ts'
import { createHistory, type History } from '../../checker/history.ts'
import { createContainer } from '../../log/containers.ts'
import type { GroupPlan, Plan } from '../plan.ts'
import { createRecorder, type Recorder } from '../programs/recorder.ts'
import type { Dice } from './dice.ts'
import type { Immediates } from './immediates.ts'
import type { NetworkDeps } from './network.ts'
import { createProcess } from './process.ts'
import { createScheduler, type Scheduler } from './scheduler.ts'
import { createService, type Service } from './service.ts'
import { openSharedStore, type SharedStore } from './shared-store.ts'
import type { Weather } from './weather.ts'

/** Everything that a run is made of. */
export type World = {
  scheduler: Scheduler
  shared: SharedStore
  service: Service
  weather: Weather
  history: History
  recorder: Recorder
  network: NetworkDeps
  /** Whose place in a queue a `queueOffsetId` is. */
  groupOf: Map<number, string>
  /** Topic → its queues. */
  queueIds: Map<string, number[]>
  /** What no fault excuses and no history shows. */
  defects: string[]
}

/**
 * Takes note of the queues that there are by now, and of the places that groups have in them. What was removed stays
 * known: it has to have been consumed.
 */
export async function lookAround({ shared, queueIds, recorder }: World): Promise<void> {
  for (const [topicName, known] of queueIds) {
    for (const { queueId } of (await shared.store.readTopic(topicName))?.queues ?? []) {
      if (!known.includes(queueId)) known.push(queueId)
    }
  }
  for (const name of await shared.store.listTopics({ limit: 1000 })) {
    const { topic, queues = [] } = (await shared.store.readTopic(name)) ?? {}
    for (const { queueId } of topic?.failOf ? queues : []) recorder.failQueues.set(queueId, name)
  }
  const names = await shared.store.listGroups({ limit: 1000 })
  for (const { offsets } of (await readGroups(shared, names)).values()) {
    for (const { queueOffsetId, queueId } of offsets) recorder.queueIds.set(queueOffsetId, queueId)
  }
}

/** Groups and their copies, by name. */
export async function readGroups({ store }: SharedStore, names: string[]): Promise<Map<string, GroupSnapshot>> {
  const read = new Map<string, GroupSnapshot>()
  for (const name of names) {
    const group = await store.readGroup(name)
    if (!group) continue
    read.set(name, group)
    for (const { copyName } of group.copies) {
      const copy = await store.readGroup(copyName)
      if (copy) read.set(copyName, copy)
    }
  }
  return read
}

/** The shortest that there is. */
const retentionMs = 3_600_000

/** A service with the topics and groups of a plan, and nobody who uses it yet. */
export async function createWorld(immediates: Immediates, plan: Plan, dice: Dice): Promise<World> {
  const scheduler = createScheduler(immediates)
  const shared = openSharedStore(() => scheduler.nowMs, plan.isHost)
  const weather = { ...plan.weather }
  const history = createHistory(() => scheduler.nowMs)
  const defects: string[] = []
  const onDefect = (what: string) => void defects.push(what)

  const { queueIds, queueOfOffset, groupOf } = await setUp(shared, plan, createProcess(scheduler, 'setup').clock)
  const service = createService(
    { shared, scheduler, weather, dice: dice.fork(), onDefect },
    {
      containers: plan.containers,
      settings: {
        ...defaultSettings,
        compression: 'fast',
        pollHoldMs: plan.pullHoldMs || defaultSettings.pollHoldMs,
        pullHoldMs: plan.pullHoldMs,
      },
      tickEveryMs: plan.isHost ? 5_000 : 60_000,
      latePuts: plan.keyedOnly,
      dieWithin: plan.containersDieWithin,
    },
  )
  const world: World = {
    scheduler,
    shared,
    service,
    weather,
    history,
    recorder: createRecorder(history, queueOfOffset, onDefect, {
      isRenamed: plan.operator?.resubscribes ?? false,
      isTagged: plan.groups.some(({ failures }) => failures !== undefined),
    }),
    network: { scheduler, service, weather, dice: dice.fork(), cutPublishes: plan.cutPublishes, onDefect },
    groupOf,
    queueIds,
    defects,
  }
  for (const group of plan.groups) noteSettings(world, group, group.settings)
  return world
}

/** Records that a group may work by these settings from now on. Recorded before they are asked for. */
export function noteSettings({ history, recorder }: World, group: GroupPlan, settings: SubscriptionSettings) {
  const { name, topicNames, mode, failures } = group
  if (mode === 'broadcast') return
  recorder.delays.mayBe(name, settings)
  const { retryCount, retryInPlace, threadSize, consumerBatchSize } = settings
  for (const topic of topicNames) {
    history.retryRules('director', {
      group: name,
      topic,
      failTopic: failTopicName(name, topic),
      hasFailTopic: failures !== undefined,
      retryCount,
      retryInPlace,
      atOnce: threadSize * consumerBatchSize,
      atOnceRetried: consumerBatchSize,
    })
  }
}

/** As the admin's use cases would, but in good weather. */
async function setUp({ store }: SharedStore, plan: Plan, clock: Clock) {
  const queueIds = new Map<string, number[]>()
  const queueOfOffset = new Map<number, number>()
  const groupOf = new Map<number, string>()
  for (const [index, { name, queues }] of plan.topics.entries()) {
    const firstId = await store.takeIds('queue', queues)
    const records = Array.from({ length: queues }, (_, i) => {
      return { topicName: name, queueId: firstId + i, checkpoint: 1 }
    })
    queueIds.set(
      name,
      records.map(record => record.queueId),
    )
    await store.createTopic({ name, topicId: index + 1, retentionMs, createdAtMs: 0 }, records)
  }
  await store.takeIds('topic', plan.topics.length)
  const core = createContainer(store, { clock })
  for (const { name: groupName, topicNames, settings, mode, failures } of plan.groups) {
    await store.createGroup({ ...newGroup(groupName, 0), mode })
    for (const topicName of failures ? topicNames : []) await subscribe(core, groupName, topicName, settings)
    for (const { queueOffsetId, queueId } of failures ? ((await store.readGroup(groupName))?.offsets ?? []) : []) {
      queueOfOffset.set(queueOffsetId, queueId)
      groupOf.set(queueOffsetId, groupName)
    }
    for (const topicName of failures ? [] : topicNames) {
      for (const queueId of mode === 'broadcast' ? [] : (queueIds.get(topicName) ?? [])) {
        const queueOffsetId = await store.takeIds('queueOffset', 1)
        queueOfOffset.set(queueOffsetId, queueId)
        groupOf.set(queueOffsetId, groupName)
        const nobodys = { offset: 0, offsetVersion: 0, consumerId: 0, isStopped: false, rbVersion: 0 }
        await store.addQueueOffset({ groupName, queueOffsetId, topicName, queueId, ...nobodys })
      }
      const topicId = plan.topics.findIndex(topic => topic.name === topicName) + 1
      await store.createSubscription({ ...settings, groupName, topicName, topicId })
    }
  }
  return { queueIds, queueOfOffset, groupOf }
}
