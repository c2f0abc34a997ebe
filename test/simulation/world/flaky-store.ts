import type { GroupSnapshot } from '../../../core/model.ts'
import { type AppendOutcome, type Store, StoreError } from '../../../core/store.ts'
import type { Dice } from './dice.ts'
import { type MemoryLog, staleSight } from './memory-log.ts'
import type { SimProcess } from './process.ts'
import type { Scheduler } from './scheduler.ts'
import type { SharedStore } from './shared-store.ts'
import { drawLatency, type Weather } from './weather.ts'

export type FlakyStoreDeps = {
  shared: SharedStore
  /** The container that asks. */
  process: SimProcess
  scheduler: Scheduler
  weather: Weather
  dice: Dice
  /** Whether a put may take effect when its sender has been told `unknown`, or is dead. */
  latePuts: boolean
}

/**
 * The shared store as one container has it, over a network and a service that have their moods: each operation takes its
 * time there and back, is refused, or is done without an answer; reads that are not consistent are answered by a replica
 * that is behind, and a read of a whole group is no snapshot.
 */
export function createFlakyStore(deps: FlakyStoreDeps): Store {
  const { shared, process, scheduler, weather, dice } = deps
  const { store } = shared
  const log = logOf(shared)

  const later = (act: () => void) => {
    const ms = drawLatency(dice, weather.storeLatencyMs)
    if (ms === 0) act()
    else scheduler.after(ms, act)
  }

  function ask<T>(effect: () => Promise<T>, fates: Fates<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const back = (settle: () => void) => later(() => process.deliver(settle))
      const answer = (done: Promise<T>) =>
        done.then(
          value => back(() => resolve(value)),
          error => back(() => reject(error)),
        )
      later(() => {
        // On its way when its sender died: it arrives or not.
        if (!process.isAlive && (!fates.mayBeLate || dice.chance(0.5))) return
        if (weather.isStoreAway) return answer(fates.unavailable())
        if (dice.chance(weather.throttled)) return answer(fates.throttled())
        if (dice.chance(weather.unavailable)) {
          return dice.chance(0.5) ? answer(fates.unavailable()) : answer(effect().then(fates.unavailable))
        }
        if (fates.mayBeLate && dice.chance(weather.late)) {
          scheduler.after(dice.spread(1, 2_000), () => void effect())
          return answer(fates.unavailable())
        }
        return answer(effect())
      })
    })
  }

  async function sight(consistent: boolean) {
    if (!consistent) return log.view(dice.chance(weather.staleReads) ? staleSight(dice, scheduler.nowMs) : everything)
    if (!dice.chance(weather.tornReads)) return log.view(everything)
    // A query is no snapshot: of what is put while it goes on, it finds some and misses some.
    const beginMs = scheduler.nowMs
    await pause()
    return log.view(({ atMs }) => atMs <= beginMs || dice.chance(0.5))
  }

  const overrides: Partial<Store> = {
    appendBatch: batch => ask(() => store.appendBatch(batch), { ...putFates, mayBeLate: deps.latePuts }),
    readBatches: query => ask(async () => (await sight(query.consistent)).readBatches(query), readFates),
    readHeaders: query => ask(async () => (await sight(query.consistent)).readHeaders(query), readFates),
    readBatchAt: (queueId, offset, options) =>
      ask(async () => (await sight(options.consistent)).readBatchAt(queueId, offset, options), readFates),
    readGroup: name => ask(() => readTorn(name), readFates),
    readGroupRecord: name => ask(() => shared.groupAsOf(name, staleTime()), readFates),
  }

  /** What there was at the beginning has been there for long. */
  const staleTime = () => Math.max(0, scheduler.nowMs - (dice.chance(weather.staleReads) ? dice.random() * 1_000 : 0))

  /** Each record is the newest, but a write may fall between two of them. */
  async function readTorn(groupName: string): Promise<GroupSnapshot | undefined> {
    const first = await store.readGroup(groupName)
    if (!first || !dice.chance(weather.tornReads)) return first
    await pause()
    const second = (await store.readGroup(groupName)) ?? first
    await pause()
    const third = (await store.readGroup(groupName)) ?? second
    const half = second.offsets.length >> 1
    const offsets = [...second.offsets.slice(0, half), ...third.offsets.slice(half)]
    const { copies, group } = first
    const { members, lost } = second
    return { copies, group, members, lost, offsets, subscriptions: third.subscriptions }
  }

  const pause = () => new Promise<void>(resolve => later(resolve))

  return new Proxy(store, {
    get(target, name: keyof Store) {
      const operation: unknown = overrides[name] ?? target[name]
      if (name in overrides || typeof operation !== 'function') return operation
      const fates =
        name.startsWith('read') || name.startsWith('list') || name.startsWith('find') ? readFates : writeFates
      return (...args: unknown[]) => ask(() => Reflect.apply(operation, target, args) as Promise<unknown>, fates)
    },
  })
}

/** What a caller hears of an operation that was not done, or may have been. */
type Fates<T> = { throttled(): Promise<T>; unavailable(): Promise<T>; mayBeLate: boolean }

const everything = () => true
const fail = (kind: StoreError['kind']) => async () => {
  throw new StoreError(kind, `the weather: ${kind}`)
}
const readFates = { throttled: fail('throttled'), unavailable: fail('unavailable'), mayBeLate: false }
const writeFates = { ...readFates, mayBeLate: true }
const putFates = {
  throttled: async (): Promise<AppendOutcome> => ({ outcome: 'throttled' }),
  unavailable: async (): Promise<AppendOutcome> => ({ outcome: 'unknown', cause: new Error('the weather: no answer') }),
}

function logOf({ log }: SharedStore): MemoryLog {
  if (!log) throw new Error('a store over SQLite alone has no moods: use createOrderedStore')
  return log
}

/** SQLite within the container's own process: what is asked for is done at once and in order, and answered in order. */
export function createOrderedStore({ shared, process, scheduler, weather, dice }: FlakyStoreDeps): Store {
  let lastAnswerAtMs = 0
  return new Proxy(shared.store, {
    get(target, name: keyof Store) {
      const operation: unknown = target[name]
      if (typeof operation !== 'function') return operation
      return (...args: unknown[]) =>
        new Promise((resolve, reject) => {
          const answer = (settle: () => void) => {
            lastAnswerAtMs = Math.max(lastAnswerAtMs, scheduler.nowMs + drawLatency(dice, weather.storeLatencyMs))
            process.after(lastAnswerAtMs - scheduler.nowMs, settle)
          }
          const done = Reflect.apply(operation, target, args) as Promise<unknown>
          done.then(
            value => answer(() => resolve(value)),
            error => answer(() => reject(error)),
          )
        })
    },
  })
}
