import { defaultSubscription } from '../../core/admin/subscriptions.ts'
import type { GroupMode, SubscriptionSettings } from '../../core/model.ts'
import type { FailurePlan } from './programs/fates.ts'
import { createDice, type Dice } from './world/dice.ts'
import { drawCleanWeather, drawWeather, type Weather } from './world/weather.ts'

/** What a seed plays: everything that is drawn once. */
export type Plan = {
  seed: number
  /** `safety`: faults to the end. `liveness`: the faults end, and then everything has to be handled and committed. */
  mode: 'safety' | 'liveness'
  /**
   * Nothing goes wrong: consumers only come and go in order, and things take their time. Then no message may be handled
   * twice (P6).
   */
  isClean: boolean
  /** One machine: a single container over SQLite, which answers in order. Otherwise several over a store as DynamoDB. */
  isHost: boolean
  /** Behind the faults, everybody sleeps until the log is empty, and then goes on. */
  sleeps: boolean
  /** Only messages with a key: what is late may then be as late as it likes, see `docs/architecture.md`, known limits. */
  keyedOnly: boolean
  /** A publish may go on in the service when its sender has lost the connection, and is sent again meanwhile. */
  cutPublishes: boolean
  containers: number
  pullHoldMs: number
  /** Containers, and programs, die within so many of their awaits. */
  containersDieWithin: number | undefined
  programsDieWithin: number | undefined
  /** How far clocks of containers are set back; they may be set forwards by any time that the service bears. */
  maxStepBackMs: number
  topics: { name: string; queues: number }[]
  groups: GroupPlan[]
  producers: number
  chaosMs: number
  /** The time between two acts of the director, on average. */
  actEveryMs: number
  weather: Weather
  operator: OperatorPlan | undefined
  /**
   * The store does nothing for anybody for so long, from then on. Nothing else goes wrong in such a run, so that nobody
   * who lives may be given up.
   */
  outage: { fromMs: number; lastsMs: number } | undefined
  /**
   * Some messages end the process of whoever handles them, for good; somebody restarts it in its place. Nothing else goes
   * wrong in such a run, so that nothing else may count as failed.
   */
  isDeadly: boolean
}

/** Somebody changes topics and groups while they are in use. */
export type OperatorPlan = {
  /** The time between two acts, on average. */
  actEveryMs: number
  /** Queues become read-only for so long that they can be removed. */
  removesQueues: boolean
  /** Offsets are set by hand. */
  resets: boolean
  /** Subscriptions end and begin again: what is sent meanwhile is not promised to the group. */
  resubscribes: boolean
}

export type GroupPlan = {
  name: string
  topicNames: [string, ...string[]]
  consumers: number
  settings: SubscriptionSettings
  mode: GroupMode
  /** Share of its consumers that have a place, which they take again when they are restarted. */
  placed: number
  /** How its handlers fail, where it has fail topics from the beginning. */
  failures: FailurePlan | undefined
}

export const maxConsumers = 5

export function drawPlan(seed: number): Plan & { dice: Dice } {
  const dice = createDice(seed)
  const keyedOnly = dice.chance(0.3)
  const topics = Array.from({ length: dice.pick([1, 1, 1, 2, 3]) }, (_, i) => ({
    name: `topic-${i + 1}`,
    queues: Math.round(dice.spread(1, 8)),
  }))
  const isHost = dice.chance(0.15)
  const isClean = dice.chance(0.15)
  const isMortal = !isClean && dice.chance(0.6)
  const drawn: Plan = {
    seed,
    mode: isClean || dice.chance(0.4) ? 'liveness' : 'safety',
    isClean,
    isHost,
    sleeps: !isHost && !isClean && dice.chance(0.15),
    keyedOnly,
    cutPublishes: false,
    containers: isHost ? 1 : dice.pick([1, 2, 2, 3, 4]),
    pullHoldMs: isHost || dice.chance(0.2) ? 10_000 : 0,
    containersDieWithin: isMortal && dice.chance(0.7) ? 2_000 : undefined,
    programsDieWithin: isMortal ? 300 : undefined,
    maxStepBackMs: keyedOnly ? 25_000 : 100,
    topics,
    groups: Array.from({ length: dice.pick([1, 1, 2]) }, (_, i) => drawGroup(dice, `group-${i + 1}`, topics)),
    producers: dice.pick([1, 2, 2, 3, 4]),
    chaosMs: dice.spread(8_000, 60_000),
    actEveryMs: isClean ? dice.spread(300, 6_000) : dice.spread(1_000, 12_000),
    weather: isClean ? drawCleanWeather(dice) : drawWeather(dice),
    operator: undefined,
    outage: undefined,
    isDeadly: false,
  }
  const featured = { ...drawn, ...drawFeatures(createDice(seed * 7_919 + 13), drawn) }
  const plan = { ...featured, groups: drawFailures(createDice(seed * 104_729 + 31), featured) }
  return { ...plan, ...drawDeaths(createDice(seed * 15_485_863 + 47), plan), dice }
}

/** And once more: messages that end processes. */
function drawDeaths(dice: Dice, plan: Plan): Partial<Plan> {
  if (plan.isClean || plan.outage) return {}
  if (!dice.chance(0.08)) {
    if (dice.chance(0.6)) return {}
    const groups = plan.groups.map(group => {
      return group.failures ? { ...group, failures: { ...group.failures, killers: 0.03 } } : group
    })
    return { groups }
  }
  return {
    isDeadly: true,
    mode: 'liveness',
    sleeps: false,
    containersDieWithin: undefined,
    programsDieWithin: undefined,
    actEveryMs: 1e12,
    operator: undefined,
    weather: { ...drawCleanWeather(dice), isDeadly: true },
    chaosMs: dice.spread(8_000, 60_000),
    groups: plan.groups.map(group => {
      const settings = {
        ...drawRetries(dice),
        retryCount: dice.pick([1, 2]),
        timeoutSeconds: 0,
        delayProcessTimeSeconds: 0,
        tag: '',
      }
      const failures: FailurePlan = { ...noFailures, settings, killers: dice.pick([0.01, 0.04]), areMended: false }
      return { ...group, mode: 'balanced', placed: 1, failures, settings: { ...group.settings, ...settings } }
    }),
  }
}

const noFailures = { isChanged: false, poison: 0, flaky: 0, killers: 0, areMended: true, hangs: false }

/** From dice of its own once more: some groups have fail topics and fail. */
function drawFailures(dice: Dice, { groups }: Plan): GroupPlan[] {
  return groups.map(group => {
    if (group.mode === 'broadcast' || !dice.chance(0.4)) return group
    const timeoutSeconds = dice.pick([0, 0, 1, 2])
    const settings = {
      ...drawRetries(dice),
      timeoutSeconds,
      delayProcessTimeSeconds: dice.pick([0, 0, 0, 1, 2]),
      tag: dice.pick(['', '', '', 'red', 'green,blue']),
    }
    const failures: FailurePlan = {
      ...noFailures,
      settings,
      isChanged: dice.chance(0.3),
      poison: dice.pick([0.02, 0.1]),
      flaky: dice.pick([0, 0.1]),
      hangs: timeoutSeconds > 0,
    }
    return { ...group, failures, settings: { ...group.settings, ...settings } }
  })
}

/** How often and how late a group retries. */
function drawRetries(dice: Dice): Partial<SubscriptionSettings> {
  return {
    retryCount: dice.pick([0, 1, 2, 3]),
    retryDelaySeconds: dice.pick([0, 1, 3]),
    retryBackoffRate: dice.pick([1, 1.5, 2]),
    maxRetryDelaySeconds: dice.pick([3, 60]),
    retryInPlace: dice.chance(0.2),
  }
}

/** What not every run has, from dice of its own: what others have is left as it is. */
function drawFeatures(dice: Dice, plan: Plan): Partial<Plan> {
  const groups = plan.groups.map((group): GroupPlan => {
    const mode = dice.chance(0.75) ? 'balanced' : dice.pick<GroupMode>(['claimed', 'broadcast'])
    const placed = mode === 'balanced' && dice.chance(0.3) ? dice.pick([0.5, 1]) : 0
    return { ...group, mode, placed }
  })
  if (!plan.isHost && dice.chance(0.06)) return { groups, ...drawOutage(dice) }
  if (dice.chance(0.7)) return { groups }
  const removesQueues = dice.chance(0.4)
  const operator: OperatorPlan = {
    actEveryMs: dice.spread(1_000, 8_000),
    removesQueues,
    resets: !plan.isClean && dice.chance(0.4),
    resubscribes: !plan.isClean && dice.chance(0.3),
  }
  return { groups, operator, ...(removesQueues && { chaosMs: dice.spread(90_000, 150_000) }) }
}

function drawOutage(dice: Dice): Partial<Plan> {
  const outage = { fromMs: dice.spread(5_000, 40_000), lastsMs: dice.spread(60_000, 180_000) }
  return {
    outage,
    mode: 'liveness',
    isClean: false,
    sleeps: false,
    containersDieWithin: undefined,
    programsDieWithin: undefined,
    actEveryMs: dice.spread(5_000, 60_000),
    chaosMs: outage.fromMs + outage.lastsMs + 70_000,
    weather: drawCleanWeather(dice),
  }
}

function drawGroup(dice: Dice, name: string, topics: Plan['topics']): GroupPlan {
  const names = topics.map(topic => topic.name) as [string, ...string[]]
  return {
    name,
    // Together the groups need not cover every topic: the audit reads them all.
    topicNames: dice.chance(0.7) ? names : [dice.pick(names)],
    consumers: dice.pick([1, 1, 2, 3]),
    settings: drawSettings(dice),
    mode: 'balanced',
    placed: 0,
    failures: undefined,
  }
}

/** Other settings for a group that works. What decides which messages fail, and are for it, stays as it is. */
export function redrawSettings(dice: Dice, { failures }: GroupPlan): SubscriptionSettings {
  const settings = { ...drawSettings(dice), ...failures?.settings }
  return failures?.isChanged ? { ...settings, ...drawRetries(dice) } : settings
}

function drawSettings(dice: Dice): SubscriptionSettings {
  return {
    ...defaultSubscription,
    // A minute would be most of a run.
    retryDelaySeconds: 1,
    threadSize: dice.pick([1, 2, 5]),
    consumerBatchSize: dice.pick([1, 1, 3, 10]),
    pullBatchSize: 50,
    maxPullTimeSeconds: dice.pick([2, 5, 5]),
  }
}
