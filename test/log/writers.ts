import { setImmediate as turn } from 'node:timers/promises'
import type { Core } from '../../core/core.ts'
import type { PublishResponse } from '../../core/protocol/publish.ts'
import { createHistory, type History, type HistoryEvent } from '../checker/history.ts'
import { readAfter, send } from './containers.ts'

export type WritersRun = {
  topicName: string
  queueIds: readonly number[]
  /** One container for each writer, one for the reader of each queue. */
  container: (n: number) => Core
  writers: number
  /** How many publishes each writer makes, and how many messages each has at most. */
  publishes: number
  maxMessages: number
  keyed: boolean
}

/** Attempts of one publish before a writer gives it up as unknown. */
const maxAttempts = 30

/**
 * Many writers at once, and a reader that follows each queue while they write. Writers send a publish again, to another
 * container, until they know that it is stored. Returns the history, with everything read that there is.
 */
export async function runWriters(run: WritersRun): Promise<readonly HistoryEvent[]> {
  const history = createHistory(() => performance.now())
  let isWriting = true
  const readers = run.queueIds.map((queueId, i) =>
    follow(history, run.container(run.writers + i), run.topicName, queueId, () => isWriting),
  )
  try {
    await Promise.all(Array.from({ length: run.writers }, (_, i) => write(history, run, i)))
  } finally {
    isWriting = false
  }
  await Promise.all(readers)
  history.drained('test', { group: 'readers' })
  return history.events
}

async function write(history: History, run: WritersRun, writer: number): Promise<void> {
  const client = `writer-${writer}`
  for (let n = 0; n < run.publishes; n++) {
    const size = 1 + ((writer * 7 + n * 3) % run.maxMessages)
    const values = Array.from({ length: size }, (_, i) => `${client}/${n}/${i}`)
    const key = run.keyed ? `key-${writer}` : undefined
    const publishId = `${client}-${n}`
    const startedAt = performance.now()
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      const messages = values.map(value => ({ value, ...(key && { key }) }))
      const op = history.publishInvoke(client, { messages, publishId, attempt, topic: run.topicName })
      // As behind API Gateway: the next attempt may reach any container.
      const container = run.container((writer + attempt - 1) % run.writers)
      const response = await attemptSend(container, run, values, {
        publishId,
        attempt,
        attemptAgeMs: Math.ceil(performance.now() - startedAt),
        ...(key && { key }),
      })
      if (response?.suc) {
        history.publishOk(client, op, placed(values, response))
        break
      }
      history.publishInfo(client, op)
      if (response && response.sleepTime === 0) throw new Error(`refused for good: ${response.msg}`)
    }
  }
}

async function attemptSend(
  container: Core,
  run: WritersRun,
  values: string[],
  fields: Parameters<typeof send>[3],
): Promise<PublishResponse | undefined> {
  try {
    return await send(container, run.topicName, values, fields)
  } catch {
    // The store was away: as with a lost answer, whether it is stored is not known.
    return undefined
  }
}

function placed(values: string[], response: PublishResponse) {
  return (response.offsets ?? []).flatMap(({ first, count, queueId, offset }) =>
    Array.from({ length: count }, (_, i) => ({
      value: values[first + i] ?? '',
      queueId: queueId ?? 0,
      offset: (offset ?? 0) + i,
    })),
  )
}

async function follow(
  history: History,
  container: Core,
  topicName: string,
  queueId: number,
  isWriting: () => boolean,
): Promise<void> {
  let at = 0
  for (;;) {
    const mayEnd = !isWriting()
    const read = await readAfter(container, queueId, at).catch(() => undefined)
    const last = read?.messages.at(-1)
    if (read && last) {
      history.pullOk(`reader-${queueId}`, { group: 'readers', queueId, from: at, ...read })
      at = last.offset
    } else if (mayEnd && (await isAtEnd(container, topicName, queueId, at))) {
      return
    } else {
      await turn()
    }
  }
}

/** Nothing to read is not the end yet: a stale replica shows less than there is. */
async function isAtEnd(container: Core, topicName: string, queueId: number, at: number): Promise<boolean> {
  const end = await container.findEnd(topicName, queueId).catch(() => undefined)
  return end === at + 1
}
