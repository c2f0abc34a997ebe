import type { Dice } from './dice.ts'

/**
 * How the world treats those in it: shares, from 0 to 1, of what meets each fault, and times in milliseconds. One object
 * for all, changed while a run goes on.
 */
export type Weather = {
  /** Operations of the store. Of those that are late, the effect comes when the caller has heard `unavailable` already. */
  throttled: number
  unavailable: number
  late: number
  staleReads: number
  tornReads: number
  storeLatencyMs: number
  /** The store does nothing for anybody. */
  isStoreAway: boolean
  /** Requests to the service and their answers. */
  unreachable: number
  lostRequests: number
  lostAnswers: number
  cutConnections: number
  repeatedRequests: number
  networkLatencyMs: number
  /** What is said on the bus. */
  lostEvents: number
  repeatedEvents: number
  /** Handlers throw. */
  failures: number
  /** What ends processes does so, also where it will be mended. */
  isDeadly: boolean
  /** Claimers fall asleep, as often as each is inclined to. */
  naps: number
}

export const calm: Weather = {
  throttled: 0,
  unavailable: 0,
  late: 0,
  staleReads: 0,
  tornReads: 0,
  storeLatencyMs: 3,
  isStoreAway: false,
  unreachable: 0,
  lostRequests: 0,
  lostAnswers: 0,
  cutConnections: 0,
  repeatedRequests: 0,
  networkLatencyMs: 5,
  lostEvents: 0,
  repeatedEvents: 0,
  failures: 0,
  isDeadly: false,
  naps: 0,
}

/**
 * The longest times keep to what the service counts on: between the 8 s after which an append is given up and the 10 s
 * after which a client tries again lie a request's way, the reads before its append, and its last put.
 */
const maxStoreLatencyMs = 300
const maxNetworkLatencyMs = 400

/** Weather of a seed: each fault is absent, rare or frequent. */
export function drawWeather(dice: Dice): Weather {
  const share = (most: number) => (dice.chance(0.3) ? 0 : dice.spread(most / 50, most))
  return {
    throttled: share(0.2),
    unavailable: share(0.1),
    late: share(0.05),
    staleReads: share(0.8),
    tornReads: share(0.3),
    storeLatencyMs: dice.spread(1, maxStoreLatencyMs),
    isStoreAway: false,
    unreachable: share(0.05),
    lostRequests: share(0.1),
    lostAnswers: share(0.1),
    cutConnections: share(0.1),
    repeatedRequests: share(0.1),
    networkLatencyMs: dice.spread(1, maxNetworkLatencyMs),
    lostEvents: share(0.3),
    repeatedEvents: share(0.3),
    failures: share(0.2),
    isDeadly: true,
    naps: 1,
  }
}

/** Nothing fails; but things take their time, and replicas are behind. */
export function drawCleanWeather(dice: Dice): Weather {
  const { staleReads, tornReads, storeLatencyMs, networkLatencyMs } = drawWeather(dice)
  return { ...calm, staleReads, tornReads, storeLatencyMs, networkLatencyMs }
}

/** Much of what there is takes no time to speak of, so that things also happen at once. */
export function drawLatency(dice: Dice, mostMs: number): number {
  return dice.chance(0.4) ? 0 : dice.spread(0.1, mostMs)
}
