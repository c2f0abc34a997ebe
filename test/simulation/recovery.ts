import { consumerCopyName } from '../../core/group/copy-names.ts'
import { failTopicName } from '../../core/group/fail-topics.ts'
import { hashKey } from '../../core/log/placement.ts'
import type { Cast } from './cast.ts'
import type { Finding } from './judge.ts'
import type { GroupPlan, Plan } from './plan.ts'
import type { Operator } from './programs/operator.ts'
import { createSender } from './programs/sender.ts'
import { createProgress } from './progress.ts'
import type { Dice } from './world/dice.ts'
import { createProcess, type SimProcess } from './world/process.ts'
import { calm } from './world/weather.ts'
import { lookAround, type World } from './world/world.ts'

/**
 * How long it may take once the faults are over, in virtual milliseconds. A publish is given up after 30 s. A dead member
 * is noticed after 30 s by the heartbeats of the living, else by the next tick, a minute later at most; then waits that
 * had grown while nothing worked come to their end.
 */
const patience = { publishMs: 40_000, drainMs: 150_000, stopMs: 30_000, operatorMs: 150_000, placeMs: 60_000 }

/** Ends the faults, and waits for what has to come then. Returns what did not. */
export async function recover(
  world: World,
  cast: Cast,
  operator: Operator | undefined,
  plan: Plan,
  dice: Dice,
): Promise<Finding[]> {
  const { history, scheduler, shared } = world
  const findings: Finding[] = []
  const { expectWithin, expectDrained } = createProgress(world, plan, findings)
  await endFaults(world, cast, plan)
  const lost = !plan.isClean && !plan.outage && !plan.isDeadly && dice.chance(0.3) ? loseForGood(cast, dice) : undefined
  if (operator) await expectWithin(patience.operatorMs, 'Q11', 'the operator cannot do its work', settle(operator))
  await work('prober')
  if (findings.length === 0 && plan.sleeps) {
    lost?.kill()
    await sleepLong()
    await work('late prober')
  }
  return findings

  /** Everything that was published is handled, by consumers that then end in order. */
  async function work(prober: string) {
    for (const { name } of plan.groups) {
      if (cast.working(name).every(({ process }) => process === lost)) cast.addConsumer(name)
    }
    const publishing = cast.producers.filter(isUnharmed).map(producer => producer.stop())
    await expectWithin(patience.publishMs, 'Q11', 'producers do not end', Promise.all(publishing))
    // With a message in each queue: one that was taken from its owner, and that nobody works on since, is not well.
    if (!(await expectDrained(patience.drainMs))) return
    // What is drained can go.
    if (operator && dice.chance(0.5)) {
      await expectWithin(patience.operatorMs, 'Q11', 'queues cannot be removed', operator.removeReadOnly())
    }
    await expectWithin(patience.publishMs, 'Q11', 'a publish does not end', publishToEach(prober))
    if (!(await expectDrained(patience.drainMs))) return
    for (const group of plan.groups) await noteDrained(group)
    await expectOneInEachPlace()
    const ending = cast.consumers.filter(isUnharmed).map(consumer => cast.dismiss(consumer))
    await expectWithin(patience.stopMs, 'Q14', 'consumers do not stop', Promise.all(ending))
  }

  async function settle({ stop, restore }: Operator) {
    await stop()
    await restore()
    await lookAround(world)
  }

  /** A member of a broadcast group has been given all, if it is one still: who was given up is another one from then on. */
  async function noteDrained({ name, topicNames, mode }: GroupPlan) {
    if (mode !== 'broadcast') {
      const failTopics = topicNames.map(topicName => failTopicName(name, topicName))
      return history.drained('director', { group: name, topics: [...topicNames, ...failTopics] })
    }
    const members = (await shared.store.readGroup(name))?.members ?? []
    const there = new Set(members.map(({ consumerId }) => consumerCopyName(name, consumerId)))
    for (const program of cast.working(name)) {
      const copyName = program.memberOf?.()
      if (!isUnharmed(program) || copyName === undefined || !there.has(copyName)) continue
      history.drained('director', { group: copyName, topics: topicNames })
    }
  }

  /** Of two that take one place the earlier one ends. */
  async function expectOneInEachPlace() {
    const crowded = () => {
      const placed = cast.working().filter(program => isUnharmed(program) && program.instanceId !== undefined)
      const places = Map.groupBy(placed, ({ groupName, instanceId }) => `${groupName}/${instanceId}`)
      return [...places].filter(([, programs]) => programs.length > 1)
    }
    const untilMs = scheduler.nowMs + patience.placeMs
    await scheduler.run(() => crowded().length === 0 || scheduler.nowMs >= untilMs)
    for (const [place, programs] of crowded()) {
      const names = programs.map(({ process }) => process.name).join(' and ')
      findings.push({ property: 'place', text: `place: ${names} both go on in ${place}` })
    }
  }

  function isUnharmed({ process }: { process: SimProcess }): boolean {
    return process.isAlive && process !== lost
  }

  async function publishToEach(name: string) {
    await lookAround(world)
    const sender = createSender(world.recorder, world.network, createProcess(scheduler, name), dice, {})
    const published = [...world.queueIds].flatMap(([topicName, queueIds]) =>
      queueIds.map((queueId, index) => {
        let key = 0
        while (hashKey(`probe-${key}`) % queueIds.length !== index) key++
        return sender.publish(topicName, [{ body: `${name}/${queueId}`, key: `probe-${key}` }])
      }),
    )
    await Promise.all(published)
    await sender.close()
  }

  /** Nobody is there for as long as it takes that everything in the log is deleted, most of it, in no order. */
  async function sleepLong() {
    for (const queueId of [...world.queueIds.values()].flat()) {
      history.trim('director', { queueId, upTo: (await shared.endOf(queueId)) - 1 })
    }
    const { clock } = createProcess(scheduler, 'time to live')
    const wakeAtMs = scheduler.nowMs + sleepMs
    const trim = () => {
      shared.log?.trim(clock.now(), () => dice.chance(0.5))
      if (scheduler.nowMs < wakeAtMs) scheduler.after(trimEveryMs, trim)
    }
    trim()
    await scheduler.run(() => scheduler.nowMs >= wakeAtMs)
  }
}

/** An hour of retention, the day by which the deletion is behind it, and some more. */
const sleepMs = 27 * 3_600_000
const trimEveryMs = 1_200_000

async function endFaults(world: World, cast: Cast, plan: Plan) {
  Object.assign(world.weather, calm)
  world.service.spare()
  for (const container of world.service.containers()) container.resume()
  cast.spare()
  for (const { process, network } of [...cast.consumers, ...cast.producers]) {
    network.isCut = false
    process.resume()
  }
  for (const queueOffsetId of world.recorder.queueIds.keys()) {
    for (const { name: groupName } of plan.groups) {
      await world.shared.store.setStopped({ groupName, queueOffsetId }, false)
    }
  }
}

/**
 * Not everything gets well again: one consumer stays cut off, or stopped. The others have to do without it, so it is none to
 * whom others in its place may have to yield.
 */
function loseForGood(cast: Cast, dice: Dice): SimProcess | undefined {
  const working = cast.working()
  const one = working.find(
    ({ groupName, instanceId }) =>
      instanceId === undefined ||
      working.filter(other => other.groupName === groupName && other.instanceId === instanceId).length === 1,
  )
  if (!one) return
  if (dice.chance(0.5)) one.process.pause()
  else one.network.isCut = true
  return one.process
}
