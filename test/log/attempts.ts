import assert from 'node:assert/strict'
import { type Appender, type AppendResult, createAppender } from '../../core/log/append.ts'
import type { Batch, BatchHeader } from '../../core/model.ts'
import type { AppendOutcome, HeaderQuery } from '../../core/store.ts'
import { type Exploration, explore, type Outcomes, type Scene, type Stage } from '../core/explore.ts'
import { createModelLog, findBreak, type ModelLog, modelStore } from '../core/model-log.ts'
import { appendRequest } from './appending.ts'

/** Two attempts of one publish, and other writers, over one queue. Each names its container; some may share one. */
export type Attempts = {
  first: string
  second: string
  others: string[]
  /** What the queue holds before, and which container has put it there and remembers where it ended. */
  before?: { by: string; count: number }[]
  /** How many puts may be in doubt: such a one takes effect at any time later, if its place is free then. */
  doubts?: number
  /** How many walks may see some of what is put while they look, and not what is put before it. */
  torn?: number
  appendsInOrder?: boolean
}

/**
 * Plays all orders in which the operations of the attempts and of the others can take effect.
 *
 * The second attempt stores nothing before the first has begun, which is when it knows where the log ends. (One that has
 * not begun when the other is stored can find it only as the last batch: see `append.test.ts`.)
 */
export function exploreAttempts(attempts: Attempts): Promise<Exploration> {
  const { first, second, others, before = [] } = attempts
  const countOf = (container: string) => [first, second, ...others].filter(name => name === container).length
  const containers = new Map<string, Appender>()
  let queue: Queue | undefined
  let queueId = 0

  return explore(async (stage): Promise<Scene> => {
    // What a container remembers of one queue says nothing of another: so each play has its own, and containers last.
    queueId++
    const played = createQueue(attempts)
    queue = played
    const appendOn = (name: string, publishId: string, fields = {}) => {
      const append = containers.get(name) ?? createContainer(name, attempts, () => queue)
      containers.set(name, append)
      return append(appendRequest(publishId, { queueId, ...fields }))
    }
    for (const [i, { by, count }] of before.entries()) await appendOn(by, `before ${i}`, { count })
    played.stage = stage
    played.isBegun = before.some(({ by }) => by === first)

    let hasArrived = false
    // Those that share a container arrive in any order, but none before the first attempt. The others have nobody to meet.
    const arrive = async (name: string, label: string) => {
      if (countOf(name) === 1) return
      const isPossible = () => name !== first || hasArrived || label === 'first'
      await stage.step(name, `${label} arrives`, () => (isPossible() ? { now: () => {} } : {}))
    }
    const actors: Scene['actors'] = {
      first: async () => {
        await arrive(first, 'first')
        hasArrived = true
        return appendOn(first, 'p', { count: 2 })
      },
      second: async () => {
        await arrive(second, 'second')
        return appendOn(second, 'p', { count: 2, lookBackMs: 0 })
      },
    }
    for (const [i, name] of others.entries()) {
      actors[`other ${i}`] = async () => {
        await arrive(name, `other ${i}`)
        return appendOn(name, `x${i}`)
      }
    }
    return {
      actors,
      world: () => [hasArrived, played.isBegun, played.doubts, played.torn, played.log, played.durable].map(toText),
      judge: results => judge(played.log, results),
    }
  })
}

function judge(log: ModelLog, results: Record<string, unknown>): void {
  const own = log.list().filter(({ publishId }) => publishId === 'p')
  assert.equal(own.length, 1, `the publish is stored ${own.length} times`)
  assert.equal(findBreak(log), undefined)
  for (const result of Object.values(results) as AppendResult[]) {
    assert.ok(result.outcome === 'stored' || result.outcome === 'found', 'not every append was told where it is')
  }
  const { first, second } = results as Record<string, { base: number }>
  assert.deepEqual([first?.base, second?.base], [own[0]?.base, own[0]?.base])
}

type Queue = {
  stage: Stage
  log: ModelLog
  /** What is readable of it, where a put is not at once. */
  durable: ModelLog
  isBegun: boolean
  doubts: number
  torn: number
}

function createQueue({ doubts = 0, torn = 0 }: Attempts): Queue {
  return { stage: atOnce, log: createModelLog(), durable: createModelLog(), isBegun: false, doubts, torn }
}

/** Takes each step when it is asked for, in the way that is named first. */
const atOnce: Stage = {
  async step<T>(_mind: string, _label: string, outcomes: Outcomes<T>) {
    const [act] = Object.values(outcomes())
    if (!act) throw new Error('nothing is possible')
    return act()
  },
}

const toText = (value: unknown) =>
  typeof value === 'object' ? (value as ModelLog).list().map(nameOf).join() : String(value)
const nameOf = ({ base, publishId }: Batch) => `${publishId} at ${base}`

const clock = { now: () => 1_000_000, monotonic: () => 0, sleep: async () => {} }

function createContainer(name: string, attempts: Attempts, current: () => Queue | undefined): Appender {
  const { appendsInOrder = false } = attempts
  const queue = () => current() as Queue
  const store = {
    ...modelStore(createModelLog(), { appendsInOrder }),
    appendBatch: ({ ...batch }: Batch) => {
      batch.queueId = 1
      return appendsInOrder ? putInOrder(queue(), name, batch) : put(queue(), name, batch, attempts)
    },
    readHeaders: (query: HeaderQuery) =>
      appendsInOrder ? readDurable(queue(), name, query, attempts) : read(queue(), name, query, attempts),
  }
  return createAppender({ store, clock, random: () => 0, resumeAt: async () => 1 })
}

/** As DynamoDB does it: the put takes effect some time between the request and the answer, or later, in doubt. */
function put(queue: Queue, name: string, batch: Batch, { first, second }: Attempts): Promise<AppendOutcome> {
  const { stage, log } = queue
  return stage.step<AppendOutcome>(name, `put ${nameOf(batch)}`, () => {
    if (batch.publishId === 'p' && name === second && name !== first && !queue.isBegun) return {}
    const done = () => log.put(batch)
    if (queue.doubts === 0) return { done }
    const inDoubt = (): AppendOutcome => {
      queue.doubts--
      void stage.step('network', `late put ${nameOf(batch)}`, () => ({ lands: () => void log.put(batch) }))
      return { outcome: 'unknown', cause: 'no answer' }
    }
    return { done, 'in doubt': inDoubt }
  })
}

async function read(queue: Queue, name: string, query: HeaderQuery, { first }: Attempts): Promise<BatchHeader[]> {
  const { stage, log } = queue
  const { direction, fromOffset, limit } = query
  type Page = { found: BatchHeader[] } | { passed: number }
  const page = await stage.step<Page>(name, `read ${limit} ${direction} from ${fromOffset}`, () => {
    const done = () => {
      if (name === first) queue.isBegun = true
      return { found: log.headers(query) }
    }
    if (direction === 'backward' || queue.torn === 0) return { done }
    const passesTheEnd = () => {
      queue.torn--
      return { passed: log.list().at(-1)?.base ?? 0 }
    }
    return { done, 'passes the end': passesTheEnd }
  })
  if ('found' in page) return page.found
  const end = log.batches.get(page.passed)
  const missed = (end?.base ?? 0) + (end?.count ?? 1)
  return stage.step(name, 'read on', () => ({ done: () => log.headers(query).filter(({ base }) => base !== missed) }))
}

/** As SQLite does it: the put takes effect at once; its transaction ends, and makes it durable, before it is answered. */
function putInOrder({ stage, log, durable }: Queue, name: string, batch: Batch): Promise<AppendOutcome> {
  const outcome = log.putAtEnd(batch)
  return stage.step(name, `answer ${nameOf(batch)}`, () => ({
    done: () => {
      for (const written of log.list()) durable.batches.set(written.base, written)
      return outcome
    },
  }))
}

function readDurable(queue: Queue, name: string, query: HeaderQuery, { first }: Attempts): Promise<BatchHeader[]> {
  if (name === first) queue.isBegun = true
  return Promise.resolve(queue.durable.headers(query))
}
