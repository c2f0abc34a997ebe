import assert from 'node:assert/strict'
import { viewDeaths } from '../../core/group/deaths.ts'
import type { Deaths, Trial } from '../../core/model.ts'
import type { Clock } from '../../core/protocol/clock.ts'
import type { CommitRequest, CommitResponse } from '../../core/protocol/commit.ts'
import type { FailuresRequest, FailuresResponse } from '../../core/protocol/failures.ts'
import type {
  AssignedQueue,
  HeartbeatResponse,
  PollRequest,
  PollResponse,
  RegisterGroupRequest,
  RegisterGroupResponse,
} from '../../core/protocol/membership.ts'
import type { FakeLog } from './fake-log.ts'

/** As on the wire. `retryDelay` is the `delayProcessTime` of the fail queues. */
export type Settings = Pick<
  AssignedQueue,
  | 'threadSize'
  | 'consumerBatchSize'
  | 'maxPullTime'
  | 'stopFlag'
  | 'tag'
  | 'delayProcessTime'
  | 'timeout'
  | 'retryCount'
  | 'retryInPlace'
  | 'retryBackoffRate'
  | 'maxRetryDelay'
  | 'traceFlag'
> & { retryDelay: number }
type Offset = {
  queueId: number
  topicName: string
  /** Of a fail queue, the topic that its messages have failed in. */
  failsOf: string | undefined
  offset: number
  offsetVersion: number
  owner: number
  next: number | undefined
  deaths?: Deaths
  trial?: Trial
}
type Group = {
  version: number
  topicNames: string[]
  settings: Settings
  hasFailTopics: boolean
  offsets: Map<number, Offset>
  members: number[]
}
type Consumer = { consumerId: number; name: string; heartbeatAtMs: number; instanceId: string | undefined }

/**
 * Groups, members and offsets of the stand-in service. A queue that is to change its owner stays with the old one until
 * that releases it, by a final commit or by presenting a version in which it does not have the queue any more.
 */
export function createFakeGroups(clock: Clock, log: FakeLog) {
  const groups = new Map<string, Group>()
  const consumers = new Map<number, Consumer>()
  /** What members did to queues, in order: `release 1 by 7 at 120`. */
  const history: string[] = []
  let lastConsumerId = 0

  function groupOf(groupName: string): Group {
    const group = groups.get(groupName)
    assert.ok(group, `no group ${groupName}`)
    return group
  }

  function give(group: Group, place: Offset, consumerId: number, ownerIsLost = false) {
    const { deaths, offsetVersion } = place
    if (ownerIsLost) place.deaths = { count: (deaths?.count ?? 0) + 1, offsetVersion }
    place.owner = consumerId
    place.next = undefined
    place.offsetVersion++
    group.version++
    history.push(`give ${place.queueId} to ${consumerId} at ${place.offset}`)
  }

  function rebalance(group: Group, lost = 0) {
    for (const [index, place] of [...group.offsets.values()].entries()) {
      const target = group.members[index % group.members.length] ?? 0
      if (place.owner === target) place.next = undefined
      else if (place.owner === 0 || !group.members.includes(place.owner))
        give(group, place, target, place.owner === lost && lost > 0)
      else if (place.next !== target) {
        place.next = target
        group.version++
      }
    }
  }

  const rivalOf = (group: Group, instanceId: string, consumerId: number) =>
    group.members.find(member => member !== consumerId && consumers.get(member)?.instanceId === instanceId)

  /** Lets the member go that has this place, and gives its queues to the one that takes it. */
  function takePlace(group: Group, instanceId: string, consumerId: number) {
    const former = rivalOf(group, instanceId, consumerId)
    if (former === undefined) return
    consumers.delete(former)
    history.push(`replace ${former} by ${consumerId}`)
    group.members = group.members.map(member => (member === former ? consumerId : member))
    for (const place of group.offsets.values()) {
      if (place.next === former) place.next = consumerId
      if (place.owner === former) give(group, place, place.next ?? consumerId)
    }
  }

  function remove(consumerId: number, isLost = false) {
    consumers.delete(consumerId)
    for (const group of groups.values()) {
      if (!group.members.includes(consumerId)) continue
      group.members = group.members.filter(member => member !== consumerId)
      rebalance(group, isLost ? consumerId : 0)
    }
  }

  function queuesOf(groupName: string, group: Group, consumerId: number): Record<string, AssignedQueue> {
    const queues: Record<string, AssignedQueue> = {}
    const { retryDelay, ...settings } = group.settings
    for (const place of group.offsets.values()) {
      const { queueId, topicName, failsOf, offset, offsetVersion, owner, next } = place
      if (owner !== consumerId || next !== undefined) continue
      const originTopicName = failsOf ?? topicName
      queues[queueId] = {
        queueOffsetId: 1000 + queueId,
        offsetVersion,
        offset,
        consumerGroupName: groupName,
        topicName,
        queueId,
        originTopicName,
        topicId: 1,
        pullBatchSize: 50,
        lastId: 0,
        ...settings,
        ...(group.hasFailTopics && { failTopicName: `${groupName}_${originTopicName}_fail` }),
        topicType: failsOf ? 2 : 1,
        ...(failsOf && { delayProcessTime: retryDelay, threadSize: 1 }),
        ...viewDeaths(place),
      }
    }
    return queues
  }

  /** Stores failures, if they come from the owner of the queue. */
  function takeFailures(request: FailuresRequest): FailuresResponse {
    const { consumerGroupName, queueOffsetId, offsetVersion, queueId, failMsg } = request
    const place = groupOf(consumerGroupName ?? '').offsets.get(queueOffsetId ?? 0)
    if (!place || place.offsetVersion !== offsetVersion) return { suc: false, fenced: true }
    assert.equal(place.queueId, queueId)
    assert.ok(consumers.has(request.consumerId ?? 0))
    if (failMsg) log.putFailures(failMsg)
    return { suc: true }
  }

  return {
    history,
    consumers,
    takeFailures,
    createGroup(groupName: string, topicNames: string[], settings: Partial<Settings> = {}, hasFailTopics = false) {
      const placesOf = (topicName: string, failsOf?: string) =>
        (log.queueIds(topicName) ?? []).map((queueId): [number, Offset] => [
          1000 + queueId,
          { queueId, topicName, failsOf, offset: 0, offsetVersion: 0, owner: 0, next: undefined },
        ])
      const places = topicNames.flatMap(topicName => placesOf(topicName))
      for (const topicName of hasFailTopics ? topicNames : []) {
        log.createTopic(`${groupName}_${topicName}_fail`, 1)
        places.push(...placesOf(`${groupName}_${topicName}_fail`, topicName))
      }
      groups.set(groupName, {
        version: 1,
        topicNames,
        settings: {
          threadSize: 1,
          consumerBatchSize: 10,
          maxPullTime: 5,
          stopFlag: 0,
          delayProcessTime: 0,
          timeout: 0,
          retryCount: 4,
          retryDelay: 60,
          traceFlag: 0,
          ...settings,
        },
        hasFailTopics,
        offsets: new Map(places),
        members: [],
      })
    },
    changeSettings(groupName: string, settings: Partial<Settings>) {
      const group = groupOf(groupName)
      Object.assign(group.settings, settings)
      group.version++
    },
    /** Changes what is recorded of a group, without a word to anybody. */
    alter(groupName: string, change: (group: Group) => void) {
      change(groupOf(groupName))
    },
    /** Ends the subscription to a topic: its queues are the group's no more. */
    unsubscribe(groupName: string, topicName: string) {
      const group = groupOf(groupName)
      group.topicNames = group.topicNames.filter(name => name !== topicName)
      for (const [id, place] of group.offsets) if (place.topicName === topicName) group.offsets.delete(id)
      group.version++
    },
    /** Sets a queue's offset by hand. */
    reset(groupName: string, queueId: number, offset: number) {
      const group = groupOf(groupName)
      const place = group.offsets.get(1000 + queueId)
      assert.ok(place)
      place.offset = offset
      place.offsetVersion++
      group.version++
    },
    /** Takes a queue from its owner without asking, as when a hand-over takes too long. */
    seize(groupName: string, queueId: number, consumerId: number) {
      const group = groupOf(groupName)
      const place = group.offsets.get(1000 + queueId)
      assert.ok(place)
      give(group, place, consumerId)
    },
    /** The service has heard no heartbeat of this consumer in time. */
    expire: (consumerId: number) => remove(consumerId, true),
    committed: (groupName: string, queueId: number) => groupOf(groupName).offsets.get(1000 + queueId)?.offset,
    /** The message that the owner of a queue says is on trial. */
    onTrial: (groupName: string, queueId: number) => groupOf(groupName).offsets.get(1000 + queueId)?.trial?.offset,
    deaths: (groupName: string, queueId: number) => groupOf(groupName).offsets.get(1000 + queueId)?.deaths?.count ?? 0,
    ownerOf: (groupName: string, queueId: number) => groupOf(groupName).offsets.get(1000 + queueId)?.owner,
    version: (groupName: string) => groups.get(groupName)?.version,

    register(name: string): number {
      const known = [...consumers.values()].find(consumer => consumer.name === name)
      const consumerId = known?.consumerId ?? ++lastConsumerId
      consumers.set(consumerId, { consumerId, name, heartbeatAtMs: clock.now(), instanceId: undefined })
      return consumerId
    },
    join({ consumerId, consumerGroupNames, instanceId, returning }: RegisterGroupRequest): RegisterGroupResponse {
      const consumer = consumers.get(consumerId ?? 0)
      if (!consumer) return { suc: false, msg: `ConsumerId_${consumerId}不存在！` }
      consumer.instanceId = instanceId ?? undefined
      const notSubscribed: Record<string, string[]> = {}
      for (const [groupName, topicNames] of Object.entries(consumerGroupNames ?? {})) {
        const group = groups.get(groupName)
        if (!group) return { suc: false, msg: `{${groupName}}不存在` }
        if (instanceId && returning && rivalOf(group, instanceId, consumer.consumerId) !== undefined) {
          return { suc: false, msg: `the place ${instanceId} was taken`, replaced: true }
        }
        if (instanceId) takePlace(group, instanceId, consumer.consumerId)
        if (!group.members.includes(consumer.consumerId)) group.members.push(consumer.consumerId)
        rebalance(group)
        const unknown = (topicNames ?? []).filter(name => !group.topicNames.includes(name))
        if (unknown.length > 0) notSubscribed[groupName] = unknown
      }
      return { suc: true, consumerGroupNameNew: {}, notSubscribed }
    },
    leave(consumerId: number) {
      history.push(`leave ${consumerId}`)
      remove(consumerId)
    },
    heartbeat(consumerId: number): HeartbeatResponse {
      const consumer = consumers.get(consumerId)
      if (consumer) consumer.heartbeatAtMs = clock.now()
      const versions = Object.fromEntries([...groups].map(([groupName, { version }]) => [groupName, version]))
      return { suc: true, heatbeatTime: 10, deleted: consumer ? 0 : 1, bakUrl: '', versions }
    },
    poll({ consumerId, consumerGroupVersion }: PollRequest): PollResponse {
      const answer: PollResponse = {
        suc: true,
        sleepTime: 0,
        consumerDeleted: 0,
        brokerMetaMode: -1,
        consumerGroups: {},
      }
      if (!consumers.has(consumerId ?? 0)) return { ...answer, consumerDeleted: 1 }
      for (const [groupName, presented] of Object.entries(consumerGroupVersion ?? {})) {
        const group = groupOf(groupName)
        for (const place of group.offsets.values()) {
          if (place.owner !== consumerId || place.next === undefined || presented < group.version) continue
          history.push(`presented ${place.queueId} by ${consumerId} at ${place.offset}`)
          give(group, place, place.next)
        }
        if (presented >= group.version) continue
        const { version } = group
        const meta = { name: groupName, rbVersion: version, metaVersion: version, version }
        answer.consumerGroups = { [groupName]: { meta, queues: queuesOf(groupName, group, consumerId ?? 0) } }
      }
      return answer
    },
    commit({ queueOffsets, flag }: CommitRequest): CommitResponse {
      const results: CommitResponse['results'] = []
      const versions: Record<string, number> = {}
      for (const { queueOffsetId, offsetVersion, offset, consumerGroupName, ...trial } of queueOffsets ?? []) {
        const group = groupOf(consumerGroupName)
        const place = group.offsets.get(queueOffsetId)
        versions[consumerGroupName] = group.version
        if (!place) {
          results.push({ queueOffsetId, outcome: 'unknown_queue' })
          continue
        }
        const isOwner = place.offsetVersion === offsetVersion
        const outcome = !isOwner ? 'fenced' : offset > place.offset ? 'advanced' : 'unchanged'
        if (isOwner) place.offset = Math.max(place.offset, offset)
        if (outcome === 'advanced') {
          delete place.deaths
          delete place.trial
        }
        const { trialOffset, trialFailures } = trial
        if (isOwner && trialOffset === 0) delete place.trial
        else if (isOwner && trialOffset)
          place.trial = { offset: trialOffset, offsetVersion, failures: trialFailures ?? 0 }
        results.push({ queueOffsetId, outcome, offsetVersion: place.offsetVersion, offset: place.offset })
        if (isOwner && flag === 1) {
          history.push(`release ${place.queueId} by ${place.owner} at ${place.offset}`)
          give(group, place, place.next ?? place.owner)
        }
        versions[consumerGroupName] = group.version
      }
      return { suc: true, results, versions }
    },
  }
}

export type FakeGroups = ReturnType<typeof createFakeGroups>
