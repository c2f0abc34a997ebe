import { createHash } from 'node:crypto'
import type { HistoryEvent } from '../checker/history.ts'
import { audit } from './audit.ts'
import { createCast } from './cast.ts'
import { direct } from './director.ts'
import { judgeRecords } from './failed-records.ts'
import { type Finding, judge } from './judge.ts'
import { drawPlan, type Plan } from './plan.ts'
import { runOperator } from './programs/operator.ts'
import { recover } from './recovery.ts'
import { createDice } from './world/dice.ts'
import { countImmediates } from './world/immediates.ts'
import { createWorld } from './world/world.ts'

export type Result = {
  seed: number
  mode: Plan['mode']
  findings: Finding[]
  /** Names the run: two runs with the same one had the same history. */
  digest: string
  history: readonly HistoryEvent[]
  steps: number
  virtualMs: number
}

/** Plays one seed from its beginning to its end, and judges it. No real time passes but that of computing. */
export async function simulate(seed: number, changes: Partial<Plan> = {}): Promise<Result> {
  const { dice, ...drawn } = drawPlan(seed)
  const plan = { ...drawn, ...changes }
  const immediates = countImmediates()
  // What a container logs of its misfortunes is the weather's.
  const logError = console.error
  console.error = () => {}
  try {
    const world = await createWorld(immediates, plan, dice)
    const { scheduler } = world
    const cast = createCast(world, plan, dice.fork())
    const director = direct(world, cast, plan, dice.fork())
    const operator = plan.operator && runOperator(world, cast.leases, plan, plan.operator, createDice(seed * 31 + 7))
    await scheduler.run(() => scheduler.nowMs >= plan.chaosMs)
    director.stop()
    const found = plan.mode === 'liveness' ? await recover(world, cast, operator, plan, dice.fork()) : []
    await audit(world)
    const isDrained = plan.mode === 'liveness' && found.length === 0
    return {
      seed,
      mode: plan.mode,
      findings: [...found, ...judge(world, plan, cast), ...(await judgeRecords(world, plan, isDrained))],
      digest: createHash('sha1').update(JSON.stringify(world.history.events)).digest('hex'),
      history: world.history.events,
      steps: scheduler.steps,
      virtualMs: Math.round(scheduler.nowMs),
    }
  } finally {
    console.error = logError
    immediates.restore()
  }
}
