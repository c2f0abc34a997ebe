import { seededRandom } from '../../support/random.ts'

/** Chance of a simulation: all of it comes from the seed, so the same seed draws the same. */
export type Dice = {
  /** From 0 up to 1. */
  random(): number
  chance(share: number): boolean
  /** A whole number, both ends included. */
  whole(min: number, max: number): number
  /** Between two positive numbers, each order of magnitude as likely as the next. */
  spread(min: number, max: number): number
  pick<T>(items: readonly [T, ...T[]]): T
  /** A die of its own: whoever draws from it leaves the draws of others as they are. */
  fork(): Dice
}

export function createDice(seed: number): Dice {
  const random = seededRandom(seed)
  // Neighbouring seeds begin alike.
  for (let draw = 0; draw < 4; draw++) random()
  const whole = (min: number, max: number) => min + Math.floor(random() * (max - min + 1))
  return {
    random,
    whole,
    chance: share => random() < share,
    spread: (min, max) => min * (max / min) ** random(),
    pick: items => items[whole(0, items.length - 1)] ?? items[0],
    fork: () => createDice(random() * 2 ** 32),
  }
}
