import { type AppendDeps, type Appender, type AppendRequest, createAppender } from '../../core/log/append.ts'
import type { Batch } from '../../core/model.ts'
import type { LogStore } from '../../core/store.ts'
import { createModelLog, type ModelLog, modelStore } from '../core/model-log.ts'
import { type ScriptedStore, scriptStore } from '../core/scripted-store.ts'
import { batchOf } from '../store/contract.ts'
import { createManualClock, type ManualClock } from '../support/manual-clock.ts'

export const appendRequest = (publishId: string, fields: Partial<AppendRequest> = {}): AppendRequest => ({
  topicName: 'orders',
  queueId: 1,
  count: 1,
  publishId,
  retentionMs: 3_600_000,
  pinned: true,
  codec: 0,
  bytes: Buffer.from('[]'),
  ...fields,
})

/** One appender over a log that a test can look into and write to, with a script for what its store does. */
export type Appending = ScriptedStore<LogStore> & {
  log: ModelLog
  clock: ManualClock
  append: Appender
  /** Another container appends, at the end. */
  otherAppends(publishId: string, fields?: Partial<Batch>): Batch
  /** The bases of the puts so far. */
  puts(): number[]
  /** How often the store was asked for this. */
  count(operation: ScriptedStore<LogStore>['calls'][number]['operation']): number
}

export function createAppending(options: { appendsInOrder?: boolean } & Partial<AppendDeps> = {}): Appending {
  const log = createModelLog()
  const clock = createManualClock()
  const scripted = scriptStore(modelStore(log, options))
  const { calls, store } = scripted
  const append = createAppender({ store, clock, random: () => 1, resumeAt: async () => 1, ...options })
  return {
    ...scripted,
    log,
    clock,
    append,
    otherAppends(publishId, fields = {}) {
      const tail = log.list().at(-1)
      const base = tail ? tail.base + tail.count : 1
      const batch = batchOf(1, base, { publishId, ...timesAt(clock), ...fields })
      log.batches.set(base, batch)
      return batch
    },
    puts: () => calls.filter(call => call.operation === 'appendBatch').map(call => (call.args[0] as Batch).base),
    count: operation => calls.filter(call => call.operation === operation).length,
  }
}

export const timesAt = (clock: ManualClock) => ({
  appendedAtMs: clock.now(),
  expiresAtMs: clock.now() + 3_600_000,
})

/** Lets time pass in small steps until it is done, a minute at most. */
export async function finish<T>(clock: ManualClock, running: Promise<T>): Promise<T> {
  let isDone = false
  const done = running.finally(() => {
    isDone = true
  })
  for (let step = 0; step < 1_200; step++) {
    await settle()
    if (isDone) break
    clock.advance(50)
  }
  if (!isDone) throw new Error('it does not end within a minute')
  return done
}

/** Everything that can go on without time passing has gone on. */
export const settle = () => new Promise(resolve => setImmediate(resolve))
