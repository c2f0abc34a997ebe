import { heartbeat } from '../../core/client/heartbeat.ts'
import type { Core } from '../../core/core.ts'
import { type Store, StoreError } from '../../core/store.ts'
import { tick } from '../../core/tick/tick.ts'
import { type Call, intercept } from '../core/scripted-store.ts'
import { createContainer } from '../log/containers.ts'
import { createManualClock, type ManualClock } from '../support/manual-clock.ts'
import { groupName, makeGroup, nowMs, openRegistry, type Registry } from './groups.ts'

export const second = 1_000
export const minute = 60_000
export const sessionTimeoutMs = 30_000

/** A group, containers that hear its consumers, and a store that can be away; things happen at seconds of a manual clock. */
export type World = {
  registry: Registry
  clock: ManualClock
  /** Which operations fail from now on, with which kind of error. */
  fail(how: Failing | undefined): void
  /** The time since the beginning. */
  now(): number
  /** A container of its own, whose clock may be wrong by so much: what it remembers, no other one knows. */
  container(clockErrorMs?: number): Core
  /** A heartbeat as a consumer sends it; false: it was not heard. */
  beat(core: Core, consumerId: number): Promise<boolean>
  tick(core: Core): Promise<void>
  /** Lets events happen in the order of their times, counted from the beginning. */
  play(events: Event[]): Promise<void>
  members(): Promise<number[]>
  close(): Promise<void>
}

type Failing = (call: Call) => StoreError['kind'] | undefined

export type Event = { atMs: number; act: () => unknown }

export async function openWorld(consumerIds: number[]): Promise<World> {
  const registry = openRegistry()
  const clock = createManualClock(nowMs)
  let failing: Failing | undefined
  await makeGroup(registry.store, { owners: consumerIds, members: consumerIds })
  const store: Store = intercept(registry.store, async call => {
    const kind = failing?.(call)
    if (kind) throw new StoreError(kind, `${call.operation}: the store is away`)
    return call.run()
  })
  return {
    registry,
    clock,
    fail(how) {
      failing = how
    },
    now: () => clock.now() - nowMs,
    container: (clockErrorMs = 0) =>
      createContainer(store, {
        clock: { ...clock, now: () => clock.now() + clockErrorMs },
        settings: { sessionTimeoutMs },
      }),
    async beat(core, consumerId) {
      try {
        const { deleted } = await heartbeat(core, { consumerId })
        return deleted === 0
      } catch (error) {
        if (error instanceof StoreError) return false
        throw error
      }
    },
    async tick(core) {
      for (const { cause } of (await tick(core)).failed) if (!(cause instanceof StoreError)) throw cause
    },
    async play(events) {
      let atMs = 0
      for (const event of events.toSorted((a, b) => a.atMs - b.atMs)) {
        clock.step(event.atMs - atMs)
        atMs = event.atMs
        await event.act()
      }
    },
    async members() {
      return (await registry.store.readGroup(groupName))?.members.map(member => member.consumerId) ?? []
    },
    close: () => registry.close(),
  }
}

/** The times of something that happens every so often, from one time on and before another. */
export function every(periodMs: number, fromMs: number, untilMs: number): number[] {
  return Array.from({ length: Math.max(0, Math.ceil((untilMs - fromMs) / periodMs)) }, (_, i) => fromMs + i * periodMs)
}
