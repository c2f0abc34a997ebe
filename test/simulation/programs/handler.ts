import type { HandlerContext, Message } from '../../../sdk/src/index.ts'
import type { Dice } from '../world/dice.ts'
import type { SimProcess } from '../world/process.ts'
import type { Weather } from '../world/weather.ts'
import type { Recorder } from './recorder.ts'

/**
 * A handler as an application has it: it takes its time, up to `workMs`, and fails now and then.
 *
 * @param nameAt what the place in a queue is called in the history; undefined where it has no part in it
 */
export function createHandler(
  { history }: Recorder,
  nameAt: (queueId: number, groupName: string) => string | undefined,
  process: SimProcess,
  dice: Dice,
  weather: Weather,
  workMs: number,
) {
  return (messages: readonly Message[], context: HandlerContext): Promise<void> | void => {
    // What the SDK had put off to the end of the turn in which the process died.
    if (!process.isAlive) return new Promise(() => {})
    const group = nameAt(context.queueId, context.groupName)
    for (const { queueId, offset, body: value } of messages) {
      if (group !== undefined) history.handleStart(process.name, { group, queueId, offset, value })
    }
    if (dice.chance(0.3)) return end(messages, group)
    return work(messages, group, context)
  }

  async function work(
    messages: readonly Message[],
    group: string | undefined,
    { signal }: HandlerContext,
  ): Promise<void> {
    // Some stop when their result no longer counts, others work on.
    await process.clock.sleep(dice.spread(0.1, workMs), dice.chance(0.5) ? signal : undefined)
    end(messages, group)
  }

  function end(messages: readonly Message[], group: string | undefined) {
    const isFailed = dice.chance(weather.failures)
    for (const { queueId, offset, body: value } of messages) {
      if (group !== undefined)
        history.handleEnd(process.name, { group, queueId, offset, value }, isFailed ? 'failed' : 'ok')
    }
    if (isFailed) throw new Error('the weather: a handler failed')
  }
}
