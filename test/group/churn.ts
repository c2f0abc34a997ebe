import assert from 'node:assert/strict'
import { updateGroup } from '../../core/admin/groups.ts'
import { commitOffset } from '../../core/client/commit.ts'
import { deRegister } from '../../core/client/deregister.ts'
import { heartbeat } from '../../core/client/heartbeat.ts'
import { getConsumerGroupPolling } from '../../core/client/poll.ts'
import { register } from '../../core/client/register.ts'
import { registerConsumerGroup } from '../../core/client/register-group.ts'
import type { Core } from '../../core/core.ts'
import { selectMembers } from '../../core/group/members.ts'
import { rebalance } from '../../core/group/rebalance.ts'
import type { GroupSnapshot } from '../../core/model.ts'
import { StoreError } from '../../core/store.ts'
import { tick } from '../../core/tick/tick.ts'
import { silentBus } from '../../functions/edge/lazy-bus.ts'
import { intercept, meet } from '../core/scripted-store.ts'
import { createContainer } from '../log/containers.ts'
import { groupOf, offsetOf, queueOf, subscriptionOf, topicOf } from '../store/contract.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { seededRandom } from '../support/random.ts'
import { groupName, nowMs, openRegistry } from './groups.ts'

const second = 1_000
const topics: Record<string, number[]> = { a: [1, 2, 3, 4, 5], b: [6, 7, 8] }
const longestPauseSeconds = 120
const ips = ['10.0.0.1', '10.0.0.2', '10.0.1.1']

export type ChurnOptions = {
  seed: number
  seconds: number
  containers: number
  tickEverySeconds: number
  /** A queue of a handled topic may be with nobody, or with one dead owner, for so long, while there is a member that may have it. */
  patienceSeconds: number
  /** Which part of the operations fails, or loses its answer. */
  failures?: number
}

type Client = {
  name: string
  consumerId: number
  topicNames: string[]
  instanceId: string | undefined
  ip: string
  phase: number
  /** It does nothing until then. Dead for ever: it may yet try to commit what it had. */
  pausedUntil: number
  version: number
  queues: Map<number, { queueOffsetId: number; offsetVersion: number }>
}

/**
 * A group whose consumers join, leave, die, pause, restart at their places and come back, while its lists change; several
 * containers, of which each request meets any; events that are lost. Everything is random, by a seed, second by second.
 */
export async function churn(options: ChurnOptions): Promise<{ moves: number; longestSeconds: number }> {
  const random = seededRandom(options.seed)
  const dice = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
  const chance = (part: number) => random() < part
  const registry = openRegistry()
  let failures = 0
  const store = intercept(registry.store, call =>
    meet(chance(failures) ? dice(['lost request', 'lost answer'] as const) : 'done', call),
  )
  const clock = createManualClock(nowMs)
  const events: string[] = []
  const cores = Array.from({ length: options.containers }, () => newCore())
  const ticking = options.containers === 1 ? (cores[0] as Core) : newCore()
  const clients = new Set<Client>()
  const told = createRecords()
  const unserved = new Map<number, { consumerId: number; since: number }>()
  let names = 0
  let longestSeconds = 0
  let at = 0

  function newCore(): Core {
    const groupChanged = async (name: string) => {
      if (!chance(0.1)) events.push(name)
    }
    return Object.assign(createContainer(store, { clock, seed: options.seed }), { bus: { ...silentBus, groupChanged } })
  }

  async function setUp(): Promise<void> {
    await store.createGroup(groupOf(groupName))
    for (const [topicName, queueIds] of Object.entries(topics)) {
      await store.createTopic(
        topicOf(topicName),
        queueIds.map(queueId => queueOf(topicName, queueId)),
      )
      await store.createSubscription(subscriptionOf(groupName, topicName))
      for (const queueId of queueIds) await store.addQueueOffset(offsetOf(groupName, queueId, { topicName, queueId }))
    }
  }

  /** What waits for another read of the group waits for a moment, not for long. */
  async function passing<T>(answer: Promise<T>): Promise<T> {
    let isAnswered = false
    const note = () => {
      isAnswered = true
    }
    answer.then(note, note)
    for (let turns = 0; !isAnswered; turns++) {
      await new Promise(setImmediate)
      if (turns % 10 === 9) clock.advance(1)
    }
    return answer
  }

  async function enter(client: Client, returning: boolean): Promise<void> {
    const core = dice(cores)
    const { id = 0 } = await register(core, { name: client.name, clientIp: client.ip, sdkVersion: '1' })
    const { suc, replaced } = await registerConsumerGroup(core, {
      consumerId: id,
      consumerGroupNames: { [groupName]: client.topicNames },
      instanceId: client.instanceId,
      returning,
    })
    if (suc) Object.assign(client, { consumerId: id, version: 0, queues: new Map() })
    if (replaced) clients.delete(client)
    else assert.ok(suc || failures > 0)
  }

  async function start(instanceId = chance(0.4) ? `place-${Math.floor(random() * 3)}` : undefined): Promise<void> {
    const client: Client = {
      name: `client-${++names}`,
      consumerId: 0,
      topicNames: dice([['a', 'b'], ['a', 'b'], ['a', 'b'], ['a'], ['b'], []]),
      instanceId,
      ip: dice(ips),
      phase: Math.floor(random() * 10),
      pausedUntil: 0,
      version: 0,
      queues: new Map(),
    }
    clients.add(client)
  }

  async function disturb(): Promise<void> {
    const alive = [...clients].filter(client => client.pausedUntil <= at)
    const some = alive.length > 0 ? dice(alive) : undefined
    if (chance(alive.length < 6 ? 0.06 : 0.02)) await start()
    if (some && chance(0.02)) {
      clients.delete(some)
      await deRegister(dice(cores), { id: some.consumerId })
    }
    if (some && chance(0.02)) some.pausedUntil = Number.POSITIVE_INFINITY
    if (some && chance(0.02)) some.pausedUntil = at + Math.floor(random() * longestPauseSeconds)
    if (some?.instanceId !== undefined && chance(0.05)) await start(some.instanceId)
    if (chance(0.01)) {
      const [allowedIps, deniedIps] = [dice([[], [], ['10.0.0.0/24']]), dice([[], [], ['10.0.0.1'], ['10.0.1.0/24']])]
      await updateGroup(dice(cores), groupName, { allowedIps, deniedIps, maxConsumers: dice([0, 0, 1, 3]) })
    }
  }

  async function work(client: Client): Promise<void> {
    if (chance(0.3)) await tryCommits(client)
    if (client.pausedUntil > at) return
    const { consumerId } = client
    if (consumerId === 0) return enter(client, false)
    if (at % 10 === client.phase) {
      const { deleted } = await heartbeat(dice(cores), { consumerId })
      if (deleted === 1) return enter(client, true)
    }
    if (at % 2 === 0) {
      const request = { consumerId, consumerGroupVersion: { [groupName]: client.version }, waitMs: 0 }
      const { consumerGroups } = await passing(getConsumerGroupPolling(dice(cores), request))
      const polled = consumerGroups?.[groupName]
      if (!polled) return
      client.version = polled.meta.version
      client.queues = new Map()
      for (const { queueId, queueOffsetId, offsetVersion } of Object.values(polled.queues)) {
        told.owns(queueId, offsetVersion, consumerId)
        client.queues.set(queueId, { queueOffsetId, offsetVersion })
      }
    }
  }

  async function tryCommits({ consumerId, queues }: Client): Promise<void> {
    const entries = [...queues].map(([queueId, place]) => ({ queueId, ...place, offset: 0 }))
    const queueOffsets = entries.map(({ queueId: _, ...entry }) => ({ ...entry, consumerGroupName: groupName }))
    const { results = [] } = await commitOffset(dice(cores), { queueOffsets })
    for (const [i, { queueId, offsetVersion }] of entries.entries()) {
      if (results[i]?.outcome === 'fenced') queues.delete(queueId)
      else told.commits(queueId, offsetVersion, consumerId)
    }
  }

  const isAlive = (consumerId: number) =>
    [...clients].some(client => client.consumerId === consumerId && client.pausedUntil <= at)

  /** The owner of each queue lives, if any member that may have it does. */
  function look(snapshot: GroupSnapshot): void {
    const living = snapshot.members.filter(member => isAlive(member.consumerId))
    const able = selectMembers({ group: snapshot.group, members: living })
    for (const { queueId, topicName, consumerId } of snapshot.offsets) {
      const isServed = isAlive(consumerId) || !able.some(member => member.topicNames.includes(topicName))
      const before = unserved.get(queueId)
      // One that has died may be given a queue as long as nobody can know.
      const since = before?.consumerId === consumerId ? before.since : at
      if (isServed) unserved.delete(queueId)
      else unserved.set(queueId, { consumerId, since })
      if (isServed) continue
      longestSeconds = Math.max(longestSeconds, at - since)
      assert.ok(at - since <= options.patienceSeconds, `queue ${queueId} has been nobody's for ${at - since} s`)
    }
  }

  async function attempt(act: () => Promise<unknown>): Promise<void> {
    try {
      await act()
    } catch (error) {
      if (failures === 0 || !(error instanceof StoreError)) throw error
    }
  }

  const read = async () => (await registry.store.readGroup(groupName)) as GroupSnapshot
  const phase = Math.floor(random() * options.tickEverySeconds)

  async function pass(isQuiet: boolean): Promise<void> {
    at++
    clock.step(second)
    failures = isQuiet ? 0 : (options.failures ?? 0)
    if (!isQuiet) await attempt(disturb)
    for (const client of [...clients]) if (clients.has(client)) await attempt(() => work(client))
    if (at % options.tickEverySeconds === phase) {
      const { failed } = await tick(ticking)
      if (failures === 0) assert.deepEqual(failed, [])
    }
    for (const name of events.splice(0)) if (chance(0.8)) await attempt(() => rebalance(dice(cores), name))
    look(await read())
  }

  try {
    await setUp()
    while (at < options.seconds) await pass(false)
    for (let i = 0; i < longestPauseSeconds + 2 * options.patienceSeconds; i++) await pass(true)
    const { group, offsets, members } = await read()
    assert.deepEqual(
      members.map(member => member.consumerId).filter(id => !isAlive(id)),
      [],
      'the dead are members still',
    )
    for (const { nextConsumerId } of offsets) assert.equal(nextConsumerId, undefined, 'a queue is on its way still')
    return { moves: group.rbVersion, longestSeconds }
  } finally {
    await registry.close()
  }
}

/** Who has which version of a queue: one consumer, and no commit of a version is taken after one of a later version. */
function createRecords() {
  const owners = new Map<string, number>()
  const newest = new Map<number, number>()
  const owns = (queueId: number, offsetVersion: number, consumerId: number) => {
    const key = `${queueId}@${offsetVersion}`
    assert.equal(owners.get(key) ?? consumerId, consumerId, `two consumers own queue ${queueId} at ${offsetVersion}`)
    owners.set(key, consumerId)
  }
  return {
    owns,
    commits(queueId: number, offsetVersion: number, consumerId: number) {
      owns(queueId, offsetVersion, consumerId)
      assert.ok(offsetVersion >= (newest.get(queueId) ?? 0), `queue ${queueId}: a former owner's commit was taken`)
      newest.set(queueId, offsetVersion)
    },
  }
}
