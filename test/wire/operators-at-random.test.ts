import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { hasOwnOffsets, kindOf } from '../../core/group/copy-names.ts'
import { topicNamesOf } from '../../core/group/fail-topics.ts'
import { selectMembers } from '../../core/group/members.ts'
import { settingsOf } from '../../core/group/subscriptions.ts'
import type { GroupSnapshot, QueueOffset } from '../../core/model.ts'
import type { EndpointName } from '../../core/protocol/endpoints.ts'
import { tick } from '../../core/tick/tick.ts'
import { seededRandom } from '../support/random.ts'
import { base } from './scene.ts'
import { openService, type Parameters, type Service } from './service.ts'

/**
 * Operators and consumers who do whatever comes to their mind, some of it at once. Whatever they do, afterwards the groups
 * are in line with their topics, the copies with their origins, and consumers have been told as PMQ's clients need it.
 */
const seeds = 12
const rounds = 40
const atOnce = 3

/** What a PMQ client knows: it takes other queues only when `rbVersion` has risen. */
type Listener = { id: number; groupName: string; rbVersion: number; version: number; queueIds: string[] }

const topicNames = ['t1', 't2']
const modes = { balanced: 'balanced', claimed: 'claimed', broadcast: 'broadcast' } as const
const groupNames = Object.keys(modes)

function createCrowd(service: Service, seed: number) {
  const random = seededRandom(seed)
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const listeners: Listener[] = []
  let names = 0

  /** Whatever is answered: only that something broke is wrong. */
  async function send(endpoint: EndpointName, request?: unknown, parameters?: Parameters) {
    const { status, text, json } = await service.send(endpoint, request, parameters)
    assert.ok(status < 500, `${endpoint} ${JSON.stringify(request)} ${JSON.stringify(parameters)}: ${text}`)
    return json
  }

  const queueOf = async (topicName: string) => {
    const topic = await service.core.store.readTopic(topicName)
    return String(pick(topic?.queues ?? [])?.queueId ?? 0)
  }
  const of = async () => pick(['all', { topicName: pick(topicNames) }, { queueId: Number(await queueOf('t1')) }])

  async function join() {
    const groupName = pick(['balanced', 'broadcast'])
    const { id } = await send('register', { ...base, name: `c${++names}` })
    const subEnv = pick([undefined, undefined, 'dev'])
    const joining = { ...base, consumerId: id, subEnv, consumerGroupNames: { [groupName]: topicNames } }
    const { consumerGroupNameNew = {} } = await send('registerConsumerGroup', joining)
    const name = (consumerGroupNameNew as Record<string, string>)[groupName] ?? groupName
    listeners.push({ id: Number(id), groupName: name, rbVersion: 0, version: 0, queueIds: [] })
  }

  async function leave() {
    const [gone] = listeners.splice(Math.floor(random() * listeners.length), 1)
    if (gone) await send('deRegister', { ...base, id: gone.id })
  }

  async function commitAll() {
    const listener = pick(listeners)
    if (!listener) return
    const { offsets = [] } = (await service.core.store.readGroup(listener.groupName)) ?? {}
    const own = offsets.filter(offset => offset.consumerId === listener.id)
    const queueOffsets = own.map(({ queueOffsetId, offsetVersion, groupName }) => {
      return { queueOffsetId, offsetVersion, offset: 1_000, consumerGroupName: groupName }
    })
    await send('commitOffset', { ...base, queueOffsets, flag: pick([0, 0, 1]) })
  }

  const acts: (() => Promise<unknown>)[] = [
    join,
    join,
    leave,
    commitAll,
    commitAll,
    () => send('addQueues', { count: pick([1, 1, 2]) }, { topicName: pick(topicNames) }),
    async () => {
      const topicName = pick(topicNames)
      await send(
        'changeQueue',
        { readOnly: pick([true, true, false]) },
        { topicName, queueId: await queueOf(topicName) },
      )
    },
    async () => {
      const topicName = pick(topicNames)
      await send('removeQueue', undefined, { topicName, queueId: await queueOf(topicName) })
    },
    () => send('subscribe', {}, { groupName: pick(groupNames), topicName: pick(topicNames) }),
    () => send('subscribe', {}, { groupName: pick(groupNames), topicName: pick(topicNames) }),
    () => send('subscribe', { threadSize: pick([1, 2, 3]) }, { groupName: 'broadcast', topicName: 't1' }),
    () => send('unsubscribe', undefined, { groupName: pick(groupNames), topicName: pick(topicNames) }),
    () => send('updateGroup', { maxConsumers: pick([0, 0, 1, 2]) }, { groupName: pick(groupNames) }),
    async () => send('resetOffsets', { of: await of(), to: pick(['start', 'end']) }, { groupName: pick(groupNames) }),
    async () => send(pick(['stopQueues', 'startQueues']), { of: await of() }, { groupName: pick(groupNames) }),
    () => send('publish', { ...base, topicName: pick(topicNames), msgs: [{ body: 'a' }, { body: 'b' }] }),
    () => send('rb', { ...base, consumerGroupNames: [pick(groupNames), pick(listeners)?.groupName ?? ''] }),
    () => send('claimQueues', { consumerGroupName: 'claimed', claimant: 'x', leaseMs: 1_000 }),
  ]

  return {
    listeners,
    async setUp() {
      for (const name of topicNames) await send('createTopic', { name, queues: 2 })
      for (const [name, mode] of Object.entries(modes)) await send('createGroup', { name, mode })
    },
    async act() {
      await Promise.all(Array.from({ length: 1 + Math.floor(random() * atOnce) }, () => pick(acts)()))
    },
    /** The tick comes, and time passes in which everybody's heart beats. */
    async rest() {
      await tick(service.core)
      service.clock.advance(pick([100, 1_000, 20_000]))
      for (const { id } of listeners) await send('heartbeat', { ...base, consumerId: id, asyn: 0 })
      await tick(service.core)
    },
  }
}

async function readAll({ core: { store } }: Service): Promise<GroupSnapshot[]> {
  const names = new Set(await store.listGroups({ limit: 100 }))
  const read: GroupSnapshot[] = []
  // Copies are put behind while it goes on.
  for (const name of names) {
    const snapshot = await store.readGroup(name)
    assert.ok(snapshot, `there is no group ${name}`)
    read.push(snapshot)
    for (const { copyName } of snapshot.copies) names.add(copyName)
  }
  return read
}

async function assertInLine(service: Service) {
  const topics = await Promise.all(topicNames.map(name => service.core.store.readTopic(name)))
  const groups = await readAll(service)
  for (const topic of topics) {
    const subscribers = groups.filter(
      ({ group, subscriptions }) =>
        kindOf(group) === 'group' && subscriptions.some(each => each.topicName === topic?.topic.name),
    )
    assert.deepEqual(topic?.groupNames, subscribers.map(({ group }) => group.name).sort())
  }
  for (const snapshot of groups) {
    const { group, subscriptions, offsets, members, copies } = snapshot
    const names = subscriptions.flatMap(topicNamesOf)
    const subscribed = await Promise.all(names.map(name => service.core.store.readTopic(name)))
    const queueIds = hasOwnOffsets(group) ? subscribed.flatMap(topic => topic?.queues.map(q => q.queueId)) : []
    const byNumber = (a = 0, b = 0) => a - b
    assert.deepEqual(offsets.map(offset => offset.queueId).sort(byNumber), queueIds.sort(byNumber), group.name)
    assert.equal(group.rebalanceDone, group.rebalanceAsked, `${group.name} owes a rebalance`)
    const origin = groups.find(each => each.group.name === group.origin?.groupName)
    if (group.origin) {
      const settings = (of: GroupSnapshot | undefined) =>
        of?.subscriptions.map(each => ({ topicName: each.topicName, ...settingsOf(each) }))
      assert.deepEqual(settings(snapshot), settings(origin), `${group.name} and its origin`)
    }
    const consumerCopies = copies.flatMap(({ consumerId }) => consumerId ?? [])
    if (!hasOwnOffsets(group))
      assert.deepEqual(
        consumerCopies.sort(byNumber),
        members.map(each => each.consumerId),
      )
    for (const offset of offsets) {
      assert.ok(
        isOwnedRightly(offset, snapshot, origin),
        `queue ${offset.queueId} of ${group.name}: ${offset.consumerId}`,
      )
    }
  }
}

/** With a member that may have it, or leaving, where there is one; all of them handle all topics. */
function isOwnedRightly(
  { consumerId, nextConsumerId }: QueueOffset,
  own: GroupSnapshot,
  origin?: GroupSnapshot,
): boolean {
  const { origin: copied, mode } = own.group
  if (copied && 'consumerId' in copied) {
    const able = origin && selectMembers(origin).some(member => member.consumerId === copied.consumerId)
    return consumerId === (able ? copied.consumerId : 0)
  }
  const able = mode === 'claimed' ? [] : selectMembers(own).map(member => member.consumerId)
  return nextConsumerId !== undefined || (able.length > 0 ? able.includes(consumerId) : consumerId === 0)
}

/** Each consumer polls; who is told of other queues is told by a higher `rbVersion`, and no queue is two consumers' own. */
async function assertTold(service: Service, listeners: readonly Listener[]) {
  const owners = new Map<string, number>()
  for (const listener of listeners) {
    const { id, groupName, version } = listener
    const request = { ...base, consumerId: id, consumerGroupVersion: { [groupName]: version }, waitMs: 0 }
    const { consumerGroups, consumerDeleted } = await service.call('getConsumerGroupPolling', request)
    assert.equal(consumerDeleted, 0)
    const told = consumerGroups?.[groupName]
    if (told) {
      const queueIds = Object.keys(told.queues)
      const { rbVersion } = told.meta
      if (rbVersion === listener.rbVersion) assert.deepEqual(queueIds, listener.queueIds, `${groupName} for ${id}`)
      assert.ok(rbVersion >= listener.rbVersion && told.meta.version > version)
      Object.assign(listener, { rbVersion, version: told.meta.version, queueIds })
    }
    for (const queueId of listener.queueIds) {
      const place = `${queueId} ${groupName}`
      assert.equal(owners.get(place), undefined, `queue ${place} is with two consumers`)
      owners.set(place, id)
    }
  }
}

describe('groups, copies and topics are in line with each other, and consumers told', () => {
  for (let seed = 1; seed <= seeds; seed++) {
    test(`whatever operators and consumers do, some of it at once: seed ${seed}`, async () => {
      const service = openService({ settings: { subEnvironments: true, pollHoldMs: 0 } })
      const crowd = createCrowd(service, seed)
      await crowd.setUp()
      for (let round = 0; round < rounds; round++) {
        await crowd.act()
        await crowd.rest()
        await assertTold(service, crowd.listeners)
        await assertInLine(service)
      }
      await service.close()
    })
  }
})
