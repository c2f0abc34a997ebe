import { failTopicName } from '../../../core/group/fail-topics.ts'
import type { ResetRequest } from '../../../core/protocol/admin.ts'
import type { EndpointName } from '../../../core/protocol/endpoints.ts'
import { type GroupPlan, type OperatorPlan, type Plan, redrawSettings } from '../plan.ts'
import type { Leases } from '../programs/leases.ts'
import type { Dice } from '../world/dice.ts'
import { addresses } from '../world/network.ts'
import { createProcess } from '../world/process.ts'
import { lookAround, noteSettings, type World } from '../world/world.ts'

/** Somebody who changes topics and groups while they are in use, one thing at a time, by the admin endpoints. */
export type Operator = {
  /** From now on nothing is changed any more; resolves when what was under way has ended. */
  stop(): Promise<void>
  /** Takes back what keeps groups from their work. */
  restore(): Promise<void>
  /** Removes the queues that are read-only, which have to be drained. */
  removeReadOnly(): Promise<void>
}

const maxQueues = 10
/** What was told to be in doubt has happened by then, or will not: a write is two seconds late at most. */
const settleMs = 4_000
/** Containers go by the queues that they remember for two seconds, by clocks that are set back by 25 s at most. */
const queuesSettleMs = 32_000

/** Answers that say that it is as it was asked for, or can't be. */
const done = new Set([200, 201])
const refused = new Set([404, 409])
const busy = new Set([429, 503])

export function runOperator(world: World, leases: Leases, plan: Plan, acts: OperatorPlan, dice: Dice): Operator {
  const { scheduler, service, history, shared, recorder, queueIds } = world
  const { clock } = createProcess(scheduler, 'operator')
  const stopping = new AbortController()
  const topics = plan.topics.map(topic => topic.name) as [string, ...string[]]
  const groups = plan.groups as [GroupPlan, ...GroupPlan[]]
  /** Topic → how many changes of its queues have not settled yet. */
  const unsettled = new Map<string, number>()
  const ended = new Set<string>()

  const others: [() => Promise<unknown>, ...(() => Promise<unknown>)[]] = [
    () => addQueues(dice.pick(topics), dice.pick([1, 1, 2])),
    () => changeQueue(dice.pick(topics)),
    () => changeQueue(dice.pick(topics)),
    () => stopQueues(dice.pick(groups)),
    () => limitMembers(dice.pick(groups), { maxConsumers: dice.pick([0, 0, 1, 2]) }),
    () => limitMembers(dice.pick(groups), { deniedIps: someAddresses() }),
    () => changeSettings(dice.pick(groups)),
    () => ask('getGroup', { groupName: dice.pick(groups).name }),
  ]
  if (acts.removesQueues)
    others.push(
      () => removeQueues(),
      () => removeQueues(),
      () => removeBehind(dice.pick(groups)),
    )
  if (acts.resets)
    others.push(
      () => reset(dice.pick(groups)),
      () => reset(dice.pick(groups)),
    )
  if (acts.resubscribes) others.push(() => resubscribe(dice.pick(groups)))

  const running = run()

  async function run() {
    for (;;) {
      await clock.sleep(-Math.log(1 - dice.random()) * acts.actEveryMs, stopping.signal)
      if (stopping.signal.aborted) return
      await dice.pick(others)()
    }
  }

  /** Asks until it is answered for certain. True: it was done; false: it was refused. */
  async function ask(name: EndpointName, parameters: Record<string, string>, request?: object): Promise<boolean> {
    for (;;) {
      const answer = await service.administer(name, parameters, request)
      const { status, text } = answer ?? { status: 503, text: '' }
      if (done.has(status)) return true
      if (refused.has(status)) return false
      if (!busy.has(status)) recorder.onDefect(`operator: ${name} was answered ${status}: ${text}`)
      await clock.sleep(dice.spread(200, 3_000))
    }
  }

  /** The same; nothing of it happens any more when this resolves. */
  async function askAndSettle(name: EndpointName, parameters: Record<string, string>, request?: object) {
    const isDone = await ask(name, parameters, request)
    await clock.sleep(settleMs)
    return isDone
  }

  /** Keys may move from before the change until nobody goes by the former queues any more. */
  async function changing<T>(topicName: string, act: () => Promise<T>): Promise<T> {
    const count = (change: number) => unsettled.set(topicName, (unsettled.get(topicName) ?? 0) + change)
    count(1)
    history.queuesChanged('operator', topicName, false)
    const result = await act()
    scheduler.after(queuesSettleMs, () => {
      count(-1)
      if (unsettled.get(topicName) === 0) history.queuesChanged('operator', topicName, true)
    })
    await lookAround(world)
    return result
  }

  async function addQueues(topicName: string, count: number) {
    if ((queueIds.get(topicName)?.length ?? 0) + count > maxQueues) return
    await changing(topicName, () => ask('addQueues', { topicName }, { count }))
  }

  /** Makes a queue read-only, or writable again. */
  async function changeQueue(topicName: string) {
    const queues = (await shared.store.readTopic(topicName))?.queues ?? []
    const [first, ...more] = queues
    if (!first) return
    const { queueId, readOnlySinceMs } = dice.pick([first, ...more])
    const readOnly = readOnlySinceMs === undefined
    // One that is to be removed is left alone.
    if (!readOnly && acts.removesQueues && dice.chance(0.7)) return
    await changing(topicName, () => ask('changeQueue', { topicName, queueId: String(queueId) }, { readOnly }))
  }

  async function removeQueues() {
    for (const topicName of topics) {
      for (const { queueId, readOnlySinceMs } of (await shared.store.readTopic(topicName))?.queues ?? []) {
        if (readOnlySinceMs === undefined) continue
        await changing(topicName, () => ask('removeQueue', { topicName, queueId: String(queueId) }))
      }
    }
  }

  /** A group that was stopped is behind: the queue has to stay for it. */
  async function removeBehind({ name: groupName, topicNames }: GroupPlan) {
    const topicName = dice.pick(topicNames)
    await ask('stopQueues', { groupName }, { of: { topicName } })
    await changeQueue(topicName)
    await clock.sleep(dice.spread(50_000, 80_000), stopping.signal)
    if (!stopping.signal.aborted) await removeQueues()
    await ask('startQueues', { groupName }, { of: { topicName } })
  }

  function someAddresses(): string[] {
    return Array.from({ length: addresses }, (_, i) => `10.0.0.${i + 1}`).filter(() => dice.chance(0.3))
  }

  async function changeSettings(group: GroupPlan) {
    const { name: groupName } = group
    const topicName = dice.pick(group.topicNames)
    if (ended.has(`${groupName}/${topicName}`)) return
    const settings = redrawSettings(dice, group)
    noteSettings(world, group, settings)
    await ask('subscribe', { groupName, topicName }, settings)
  }

  async function stopQueues({ name: groupName, topicNames }: GroupPlan) {
    const of = dice.chance(0.5) ? 'all' : { topicName: dice.pick(topicNames) }
    await ask('stopQueues', { groupName }, { of })
    await clock.sleep(dice.spread(100, 20_000), stopping.signal)
    await ask('startQueues', { groupName }, { of })
  }

  async function reset({ name: groupName, mode }: GroupPlan) {
    // Of a broadcast group the copies would each have to be looked after.
    if (mode === 'broadcast') return
    const offsets = (await shared.store.readGroup(groupName))?.offsets ?? []
    const [first, ...more] = offsets
    if (!first) return
    const { queueId, queueOffsetId } = dice.pick([first, ...more])
    const group = recorder.placeName(groupName, queueOffsetId)
    const newest = (await shared.endOf(queueId)) - 1
    const to = dice.pick<ResetRequest['to']>(['start', 'end', { offset: dice.whole(0, newest) }])
    const highest = to === 'start' ? 0 : to !== 'end' && 'offset' in to ? to.offset : Number.MAX_SAFE_INTEGER
    const op = history.resetInvoke('operator', { group, queueId, offset: highest })
    leases.forgetAll()
    await askAndSettle('resetOffsets', { groupName }, { of: { queueId }, to })
    leases.forgetAll()
    history.resetOk('operator', op, to === 'end' ? { offset: (await shared.endOf(queueId)) - 1 } : {})
  }

  async function resubscribe({ name: groupName, topicNames, settings }: GroupPlan) {
    const topicName = dice.pick(topicNames)
    await unsubscribe(groupName, topicName)
    await clock.sleep(dice.spread(10, 15_000), stopping.signal)
    await subscribe(groupName, topicName, settings)
  }

  async function unsubscribe(groupName: string, topicName: string) {
    ended.add(`${groupName}/${topicName}`)
    history.unsubscribed('operator', groupName, topicName)
    history.unsubscribed('operator', groupName, failTopicName(groupName, topicName))
    await askAndSettle('unsubscribe', { groupName, topicName })
  }

  async function subscribe(groupName: string, topicName: string, settings: object) {
    if (await ask('subscribe', { groupName, topicName }, settings)) {
      history.subscribed('operator', groupName, topicName)
      history.subscribed('operator', groupName, failTopicName(groupName, topicName))
    } else recorder.onDefect(`operator: group ${groupName} cannot subscribe to ${topicName}`)
    ended.delete(`${groupName}/${topicName}`)
    await clock.sleep(settleMs)
    await lookAround(world)
  }

  /** Who claims queues is no member. */
  function limitMembers({ name: groupName, mode }: GroupPlan, limits: object) {
    return ask('updateGroup', { groupName }, mode === 'claimed' ? {} : limits)
  }

  return {
    stop() {
      stopping.abort()
      return running
    },
    async restore() {
      for (const group of groups) {
        await limitMembers(group, { maxConsumers: 0, deniedIps: [] })
        await ask('startQueues', { groupName: group.name }, { of: 'all' })
      }
    },
    async removeReadOnly() {
      for (const topicName of topics) {
        for (const { queueId, readOnlySinceMs } of (await shared.store.readTopic(topicName))?.queues ?? []) {
          if (readOnlySinceMs === undefined) continue
          let isRemoved = false
          // By a clock that was set back it has become read-only just now.
          for (let attempt = 0; !isRemoved && attempt < 12; attempt++) {
            isRemoved = await changing(topicName, () => ask('removeQueue', { topicName, queueId: String(queueId) }))
            if (!isRemoved) await clock.sleep(10_000)
          }
          if (!isRemoved)
            recorder.onDefect(`operator: queue ${queueId} is drained and read-only, but cannot be removed`)
        }
      }
    },
  }
}
