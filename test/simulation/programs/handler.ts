import type { HandlerContext, HandlerResult, Message } from '../../../sdk/src/index.ts'
import type { Dice } from '../world/dice.ts'
import type { SimProcess } from '../world/process.ts'
import type { Weather } from '../world/weather.ts'
import { type FailurePlan, isFlaky, isKiller, isPoison } from './fates.ts'
import type { Recorder } from './recorder.ts'

/** What the handler of a consumer is made of. */
export type HandlerDeps = {
  recorder: Recorder
  /** What the place in a queue is called in the history. */
  nameAt(queueId: number, groupName: string): string
  process: SimProcess
  dice: Dice
  weather: Weather
  /** How its group fails; undefined: only as the weather has it. */
  failures: FailurePlan | undefined
  /** The longest that it takes. */
  workMs: number
}

type Result = HandlerResult | Promise<HandlerResult>

/** A handler as an application has it: it takes its time, up to `workMs`, and fails now and then, in all ways that there are. */
export function createHandler(deps: HandlerDeps) {
  const { recorder, nameAt, process, dice, weather, failures, workMs } = deps
  const { history, delays } = recorder

  return (messages: readonly Message[], context: HandlerContext): Result => {
    // What the SDK had put off to the end of the turn in which the process died.
    if (!process.isAlive) return new Promise(() => {})
    const call = begin(messages, context)
    if (messages.some(message => kills(context.groupName, message))) return die()
    if (dice.chance(0.3)) return call.end()
    return work(call, context)
  }

  function begin(messages: readonly Message[], { queueId, groupName, signal }: HandlerContext) {
    const group = nameAt(queueId, groupName)
    const isRetried = recorder.failTopicOf(queueId) !== undefined
    const named = messages.map(message => {
      const { offset } = message
      delays.handedOut(process.name, groupName, message, isRetried, process.clock.monotonic())
      return { message, handled: { group, queueId, offset, value: recorder.valueOf(queueId, message) } }
    })
    let isOver = false
    for (const { handled } of named) history.handleStart(process.name, handled)

    function note(hasFailed: (message: Message) => boolean) {
      if (isOver) return
      isOver = true
      signal.removeEventListener('abort', giveUp)
      for (const { message, handled } of named) {
        history.handleEnd(process.name, handled, hasFailed(message) ? 'failed' : 'ok')
      }
    }
    /** From here on its result does not count. */
    const giveUp = () => note(() => true)
    signal.addEventListener('abort', giveUp, { once: true })

    return {
      end(): HandlerResult {
        const isWeather = dice.chance(weather.failures)
        const failed = new Set(failures && messages.filter(message => fails(failures, groupName, message)))
        if (!isWeather && failed.size === 0) return note(() => false)
        if (!failures || isWeather || dice.chance(0.4)) {
          note(() => true)
          if (failures && dice.chance(0.3)) throw undefined
          throw new Error('the weather: a handler failed')
        }
        if (dice.chance(0.3)) {
          note(() => true)
          return malformed(dice, messages)
        }
        note(message => failed.has(message))
        return [...failed].map(({ offset }) => offset)
      },
    }
  }

  async function work(call: { end(): HandlerResult }, { signal }: HandlerContext): Promise<HandlerResult> {
    const ms = dice.spread(0.1, workMs)
    // Some stop when their result no longer counts, others work on.
    const until = dice.chance(0.5) ? signal : undefined
    await process.clock.sleep(ms, until)
    const { hangs, settings: { timeoutSeconds = 0 } = {} } = failures ?? {}
    if (hangs && dice.chance(0.03)) await process.clock.sleep(timeoutSeconds * 3_000 * dice.random(), until)
    return call.end()
  }

  function kills(groupName: string, { body }: Message): boolean {
    return isKiller(failures, groupName, body) && (weather.isDeadly || failures?.areMended === false)
  }

  /** At once, or when it has worked for a while. */
  async function die(): Promise<void> {
    if (dice.chance(0.5)) await process.clock.sleep(dice.spread(0.1, workMs))
    process.kill()
    await new Promise(() => {})
  }

  function fails(plan: FailurePlan, groupName: string, { body }: Message): boolean {
    return isPoison(plan, groupName, body) || (isFlaky(plan, groupName, body) && dice.chance(0.5))
  }
}

/** Something that no handler may return. */
function malformed(dice: Dice, messages: readonly Message[]): HandlerResult {
  // In the order of keys the last one need not have the highest offset.
  const foreign = Math.max(...messages.map(({ offset }) => offset)) + 1
  const results: [unknown, ...unknown[]] = [true, 'done', 0, {}, [foreign], [undefined], [messages[0]?.offset, -1]]
  return dice.pick(results) as HandlerResult
}
