import { maxConsumers, type Plan } from './plan.ts'
import { drawClaimer, runClaimer } from './programs/claimer.ts'
import { drawConsumer, runConsumer } from './programs/consumer.ts'
import { drawLambda, runLambda } from './programs/lambda.ts'
import { createLeases, type Leases } from './programs/leases.ts'
import { drawProducer, type ProducerProgram, runProducer } from './programs/producer.ts'
import type { Program } from './programs/program.ts'
import type { Dice } from './world/dice.ts'
import { createProcess } from './world/process.ts'
import type { World } from './world/world.ts'

/** The programs of a run: those that are, and those that were. */
export type Cast = {
  consumers: Program[]
  producers: ProducerProgram[]
  leases: Leases
  /** Undefined: the group has as many as it may have. With an `instanceId` it takes that place. */
  addConsumer(groupName: string, instanceId?: string): Program | undefined
  addProducer(): void
  /** Those that live and are not about to end, of all or of one group. */
  working(groupName?: string): Program[]
  /** Tells a program to end in order. */
  dismiss(program: Program): Promise<void>
  /** From now on programs live. */
  spare(): void
}

export function createCast(world: World, plan: Plan, dice: Dice): Cast {
  const { scheduler, recorder, network } = world
  const consumers: Program[] = []
  const producers: ProducerProgram[] = []
  const dismissed = new Set<Program>()
  let dieWithin = plan.programsDieWithin
  const topicNames = plan.topics.map(topic => topic.name) as [string, ...string[]]

  function newProcess(name: string) {
    const process = createProcess(scheduler, name, dice.whole(-5_000, 5_000))
    if (dieWithin !== undefined && dice.chance(0.3)) process.dieWithin(Math.ceil(dice.spread(1, dieWithin)))
    return process
  }

  const isWorking = (program: Program) =>
    program.process.isAlive && !dismissed.has(program) && program.isReplaced?.() !== true
  const leases = createLeases(plan.weather.late > 0 ? 3_000 : 1_000)
  let places = 0

  function add(program: Program): Program {
    consumers.push(program)
    const { process, groupName = '', instanceId } = program
    // Where messages end processes, somebody starts them again.
    if ((plan.groups.find(({ name }) => name === groupName)?.failures?.killers ?? 0) > 0) {
      const pauseMs = dice.spread(10, 3_000)
      const restart = () => (plan.isDeadly || world.weather.isDeadly) && cast.addConsumer(groupName, instanceId)
      process.onKilled(() => void scheduler.after(pauseMs, restart))
    }
    return program
  }

  const cast: Cast = {
    consumers,
    producers,
    leases,
    addConsumer(groupName, instanceId) {
      const group = plan.groups.find(({ name }) => name === groupName)
      if (!group || cast.working(groupName).length >= maxConsumers) return
      const process = newProcess(`consumer-${consumers.length + 1}`)
      if (group.mode === 'claimed') {
        const isLambda = dice.chance(0.5)
        // Whoever claims by other means than the SDK knows nothing of fail topics.
        if (isLambda || group.failures || plan.operator) {
          const drawn = drawLambda(dice, group, plan.isClean)
          return add(runLambda(recorder, leases, network, process, dice.fork(), drawn))
        }
        const drawn = drawClaimer(dice, group, plan.isClean)
        return add(runClaimer(recorder, leases, network, process, dice.fork(), drawn))
      }
      const place = instanceId ?? (group.placed > 0 && dice.chance(group.placed) ? `place-${++places}` : undefined)
      const drawn = drawConsumer(dice, group, plan.isClean, place)
      return add(runConsumer(recorder, network, process, dice.fork(), drawn))
    },
    addProducer() {
      const process = newProcess(`producer-${producers.length + 1}`)
      const drawn = drawProducer(dice, topicNames, plan.keyedOnly, plan.chaosMs)
      producers.push(runProducer(recorder, network, process, dice.fork(), drawn))
    },
    working: groupName =>
      consumers.filter(program => isWorking(program) && (groupName === undefined || program.groupName === groupName)),
    dismiss(program) {
      dismissed.add(program)
      return program.stop()
    },
    spare() {
      dieWithin = undefined
      for (const { process } of [...consumers, ...producers]) process.dieWithin(Number.POSITIVE_INFINITY)
    },
  }
  return cast
}
