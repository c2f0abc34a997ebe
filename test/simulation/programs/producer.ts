import type { NewMessage } from '../../../sdk/src/index.ts'
import type { ProducerOptions } from '../../../sdk/src/producer-options.ts'
import type { Dice } from '../world/dice.ts'
import type { NetworkDeps } from '../world/network.ts'
import type { SimProcess } from '../world/process.ts'
import type { Program } from './program.ts'
import type { Recorder } from './recorder.ts'
import { createSender, type KeyOrder } from './sender.ts'

export type ProducerPlan = {
  topicNames: readonly [string, ...string[]]
  options: ProducerOptions
  /** Share of the publishes whose messages have a key. */
  keyed: number
  /** How many calls of `publish` it makes, and how long it waits between two at most. */
  publishes: number
  paceMs: number
  /** Now and then it waits for this long at most. */
  restMs: number
}

export function drawProducer(
  dice: Dice,
  topicNames: readonly [string, ...string[]],
  keyedOnly: boolean,
  lastsMs: number,
): ProducerPlan {
  const options = {
    lingerMs: dice.pick([0, 0, 5, 50]),
    maxBatchMessages: dice.pick([1, 3, 1_000]),
    maxInFlight: dice.pick([1, 4]),
    publishTimeoutMs: dice.pick([1_500, 5_000, 30_000, 30_000]),
  }
  const publishes = Math.round(dice.spread(4, 40))
  const keyed = keyedOnly ? 1 : dice.pick([0, 0.5, 1])
  return { topicNames, options, keyed, publishes, paceMs: dice.spread(1, (2 * lastsMs) / publishes), restMs: lastsMs }
}

export type ProducerProgram = Program & {
  keyOrder: KeyOrder
  /** Resolves when it has published all that it had to, and knows what became of it. */
  done: Promise<void>
}

/** A producer as an application runs it: bursts and pauses, with and without waiting for the answer. */
export function runProducer(
  recorder: Recorder,
  deps: NetworkDeps,
  process: SimProcess,
  dice: Dice,
  plan: ProducerPlan,
): ProducerProgram {
  const { network, keyOrder, publish, close } = createSender(recorder, deps, process, dice, plan.options)
  const stopping = new AbortController()
  let values = 0

  async function run() {
    for (let n = 0; n < plan.publishes && !stopping.signal.aborted; n++) {
      const isKeyed = dice.chance(plan.keyed)
      const others = Array.from({ length: dice.pick([0, 0, 1, 4]) }, () => newMessage(isKeyed))
      const published = publish(dice.pick(plan.topicNames), [newMessage(isKeyed), ...others])
      if (dice.chance(0.5)) await published
      if (dice.chance(0.05)) await process.clock.sleep(dice.spread(1, plan.restMs), stopping.signal)
      if (dice.chance(0.6)) await process.clock.sleep(dice.spread(0.1, plan.paceMs), stopping.signal)
    }
    await close()
  }

  function newMessage(isKeyed: boolean): NewMessage {
    return { body: `${process.name}/${++values}`, ...(isKeyed && { key: `key-${dice.whole(1, 3)}` }) }
  }

  const done = run()
  return {
    process,
    network,
    keyOrder,
    done,
    stop() {
      stopping.abort()
      return done
    },
  }
}
