import type { Bus } from '../core.ts'
import { createLru } from '../lru.ts'
import type { QueueOfTopic } from '../notices.ts'
import type { Clock } from '../protocol/clock.ts'

/** `QueueAppended` is said at once, for each queue and container with a gap of so much in between. */
export const appendedGapMs = 100
/**
 * And so often in a row; then once in each second. Each word is paid for, and who works through a busy queue finds what comes
 * by himself.
 */
export const appendedBurst = 3
const refillMs = 1_000
/**
 * What is appended in between is told of by one `QueueBusy`, which is heard a second after it was said. So whatever is appended
 * within this time after it needs no other word.
 */
export const busyGapMs = 900

const maxRemembered = 10_000

type Said = { appended: Moment; left: number; busy?: Moment }
type Moment = { wallMs: number; monotonicMs: number }

/**
 * Says that a queue has got messages, so that after each append somebody hears of the queue who was not told before it. A
 * container is frozen between requests and can set no timer; so what is not said now is said by a word that is heard later.
 */
export function createAnnouncer(clock: Clock, bus: Pick<Bus, 'tell'>): (queue: QueueOfTopic) => Promise<void> {
  const saidOf = createLru<string, Said>(maxRemembered)

  /** By both clocks: the one stands still while a container is frozen, the other one may be set back. */
  const isWithin = (moment: Moment | undefined, gapMs: number) => moment !== undefined && sinceMs(moment) < gapMs
  const sinceMs = ({ wallMs, monotonicMs }: Moment) => {
    const byWallMs = clock.now() - wallMs
    return byWallMs < 0 ? Number.POSITIVE_INFINITY : Math.max(byWallMs, clock.monotonic() - monotonicMs)
  }

  return async queue => {
    const key = `${queue.queueId}${queue.isDue ? ' due' : ''}`
    const said = saidOf.get(key)
    const moment = { wallMs: clock.now(), monotonicMs: clock.monotonic() }
    const left = said ? Math.min(appendedBurst, said.left + sinceMs(said.appended) / refillMs) : appendedBurst
    if (left >= 1 && !isWithin(said?.appended, appendedGapMs)) {
      saidOf.set(key, { ...said, appended: moment, left: left - 1 })
      await bus.tell({ type: 'QueueAppended', ...queue })
    } else if (said && !isWithin(said.busy, busyGapMs)) {
      saidOf.set(key, { ...said, busy: moment })
      await bus.tell({ type: 'QueueBusy', ...queue })
    }
  }
}
