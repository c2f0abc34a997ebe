import type { Bus } from '../core.ts'
import { createLru } from '../lru.ts'
import type { QueueOfTopic } from '../notices.ts'
import type { Clock } from '../protocol/clock.ts'

/** `QueueAppended` is said at once, with a gap of so many milliseconds in between for each queue and container. */
export const appendedGapMs = 100
/**
 * What comes in that gap is told of by one `QueueBusy`, which is heard a second after it was said. So whatever is appended
 * within this time after it needs no other word.
 */
export const busyGapMs = 900

const maxRemembered = 10_000

type Said = { appended: Moment; busy?: Moment }
type Moment = { wallMs: number; monotonicMs: number }

/**
 * Says that a queue has got messages, so that after each append somebody hears of the queue who was not told before it. A
 * container is frozen between requests and can set no timer; so what is not said now is said by a word that is heard later.
 */
export function createAnnouncer(clock: Clock, bus: Pick<Bus, 'tell'>): (queue: QueueOfTopic) => Promise<void> {
  const saidOf = createLru<string, Said>(maxRemembered)

  /** By both clocks: the one stands still while a container is frozen, the other one may be set back. */
  const isWithin = (moment: Moment | undefined, gapMs: number) => {
    if (!moment) return false
    const wallMs = clock.now() - moment.wallMs
    return wallMs >= 0 && wallMs < gapMs && clock.monotonic() - moment.monotonicMs < gapMs
  }

  return async queue => {
    const key = `${queue.queueId}${queue.isDue ? ' due' : ''}`
    const said = saidOf.get(key)
    const moment = { wallMs: clock.now(), monotonicMs: clock.monotonic() }
    if (!said || !isWithin(said.appended, appendedGapMs)) {
      saidOf.set(key, { ...said, appended: moment })
      await bus.tell({ type: 'QueueAppended', ...queue })
    } else if (!isWithin(said.busy, busyGapMs)) {
      saidOf.set(key, { ...said, busy: moment })
      await bus.tell({ type: 'QueueBusy', ...queue })
    }
  }
}
