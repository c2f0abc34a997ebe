import { checkHistory } from './check.ts'
import { createHistory, type History, type HistoryEvent } from './history.ts'
import { explain, type Property } from './violation.ts'

/** A history told by hand, in the shorthand of one topic. */
export type Scene = History & {
  /** A publish that is acknowledged at once: the values are in a row from `offset` on. */
  publish: (client: string, values: string[], offset: number, options?: { queueId?: number; key?: string }) => number
  /** A pull of these values, in a row after `from`. */
  pull: (client: string, values: string[], from: number, options?: { group?: string; offsetVersion?: number }) => void
  /** Handles one message of queue 1 to the end. */
  handle: (client: string, value: string, offset: number, outcome?: 'ok' | 'moved' | 'filtered' | 'failed') => void
  /** A commit of group g in queue 1 that advances. */
  commit: (client: string, offset: number, offsetVersion: number) => void
  /** Group g's queue 1 goes to a consumer. */
  gain: (client: string, offset: number, offsetVersion: number) => void
}

/** The first queue and the group of the scenes. */
export const queue1 = { group: 'g', queueId: 1 }

export function recordScene(tell: (scene: Scene) => void): HistoryEvent[] {
  let now = 0
  const history = createHistory(() => now++)
  tell({
    ...history,
    publish(client, values, offset, { queueId = 1, key } = {}) {
      const messages = values.map(value => ({ value, ...(key === undefined ? {} : { key }) }))
      const op = history.publishInvoke(client, { messages })
      const placed = inARow(values, offset).map(message => ({ ...message, queueId }))
      history.publishOk(client, op, placed)
      return op
    },
    pull: (client, values, from, options) =>
      history.pullOk(client, { queueId: 1, from, messages: inARow(values, from + 1), ...options }),
    handle(client, value, offset, outcome = 'ok') {
      history.handleStart(client, { ...queue1, offset, value })
      history.handleEnd(client, { ...queue1, offset, value }, outcome)
    },
    commit(client, offset, offsetVersion) {
      const op = history.commitInvoke(client, { ...queue1, offset, offsetVersion })
      history.commitOk(client, op, { outcome: 'advanced', offsetVersion })
    },
    gain: (client, offset, offsetVersion) => history.assignmentGained(client, { ...queue1, offset, offsetVersion }),
  })
  return [...history.events]
}

/** What the checker says of a scene. */
export function judge(tell: (scene: Scene) => void): string {
  return explain(checkHistory(recordScene(tell)))
}

/** The properties that it finds broken, each once. */
export function brokenIn(tell: (scene: Scene) => void): Property[] {
  return [...new Set(checkHistory(recordScene(tell)).map(({ property }) => property))]
}

function inARow(values: string[], offset: number) {
  return values.map((value, index) => ({ value, offset: offset + index }))
}
