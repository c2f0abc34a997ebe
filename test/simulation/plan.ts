import type { SubscriptionSettings } from '../../core/model.ts'
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
}

export type GroupPlan = {
  name: string
  topicNames: [string, ...string[]]
  consumers: number
  settings: SubscriptionSettings
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
  return {
    seed,
    dice,
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
  }
}

export function drawSettings(dice: Dice): SubscriptionSettings {
  return {
    threadSize: dice.pick([1, 2, 5]),
    consumerBatchSize: dice.pick([1, 1, 3, 10]),
    pullBatchSize: 50,
    maxPullTimeSeconds: dice.pick([2, 5, 5]),
  }
}
