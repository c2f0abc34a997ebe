import { subscribe } from '../core/admin/subscriptions.ts'
import { createTopic } from '../core/admin/topics.ts'
import { type Core, createCore, defaultSettings } from '../core/core.ts'
import { newGroup } from '../core/group/copies.ts'
import { tick } from '../core/tick/tick.ts'
import { newSecret } from '../functions/edge/core.ts'
import { silentBus } from '../functions/edge/lazy-bus.ts'
import { createCapacityMeter } from '../store/dynamo/meter.ts'
import { openTestStore } from '../test/support/dynamo-store.ts'
import { dynoxide } from '../test/support/engines.ts'
import { createManualClock } from '../test/support/manual-clock.ts'

/**
 * What a tick costs a fleet in which nothing happens: DynamoDB's units as it counts them, of two hours of ticks by the real
 * code after an hour by which it has found out that nothing happens. Prices of us-east-1 on demand, December 2026.
 */
type Fleet = { name: string; groups: number; queues: number; hasMembers: boolean }

const fleets: Fleet[] = [
  { name: '1,000 groups of 4 queues, nobody running', groups: 1_000, queues: 4, hasMembers: false },
  { name: '100 groups of 4 queues, a consumer each', groups: 100, queues: 4, hasMembers: true },
  { name: '10 groups of 50 queues, a consumer each', groups: 10, queues: 50, hasMembers: true },
]
const readUsd = 0.125e-6
const writeUsd = 0.625e-6
const ticksPerMonth = 30 * 24 * 60
const hours = { before: 1, measured: 2 }
const minuteMs = 60_000

const engine = dynoxide()
if (engine.skip) throw new Error(engine.skip)
const running = await engine.start()

async function measure({ name, groups, queues, hasMembers }: Fleet): Promise<void> {
  const meter = createCapacityMeter()
  const clock = createManualClock(Date.UTC(2026, 11, 1))
  const { store, close } = await openTestStore(running, { onCapacity: meter.onCapacity, clock })
  let ids = 0
  const core: Core = createCore({
    store,
    clock,
    random: Math.random,
    newId: () => `id-${++ids}`,
    newSecret,
    bus: silentBus,
    settings: defaultSettings,
  })
  const consumerIds: number[] = []
  for (let i = 0; i < groups; i++) {
    const [topicName, groupName] = [`topic-${i}`, `group-${i}`]
    await createTopic(core, { name: topicName, queues, retentionMs: 7 * 86_400_000 })
    await store.createGroup(newGroup(groupName, clock.now()))
    await subscribe(core, groupName, topicName, {})
    if (!hasMembers) continue
    const consumer = { consumerId: i + 1, name: `c${i}`, ip: '10.0.0.1', sdkVersion: '1', lan: 'node', groupNames: [] }
    const consumerId = await store.registerConsumer({ ...consumer, heartbeatAtMs: clock.now() })
    const joinedAtMs = clock.now()
    const member = { groupName, consumerId, consumerName: `c${i}`, ip: '10.0.0.1', topicNames: [topicName], joinedAtMs }
    await store.joinGroup(member)
    await store.askRebalance(groupName)
    consumerIds.push(consumerId)
  }

  let ticks = 0
  let ms = 0
  async function run(forHours: number): Promise<void> {
    for (let minute = 0; minute < forHours * 60; minute++) {
      clock.advance(minuteMs)
      // Heartbeats are the consumers' own cost.
      for (const consumerId of consumerIds) await store.heartbeat(consumerId, clock.now())
      const startedAt = performance.now()
      const { failed, left } = await tick(core)
      ms += performance.now() - startedAt
      ticks++
      if (failed.length > 0 || left > 0) throw new Error(`${failed.length} failed, ${left} left: ${failed[0]?.cause}`)
    }
  }
  await run(hours.before)
  meter.clear()
  ticks = 0
  ms = 0
  await run(hours.measured)
  const heartbeats = meter.of('heartbeat')
  const { readUnits, writeUnits } = meter.sum()
  const perTick = (units: number) => units / ticks
  const usd = (perTick(readUnits) * readUsd + perTick(writeUnits - heartbeats.writeUnits) * writeUsd) * ticksPerMonth
  const parts = Object.entries(meter.all())
    .filter(([operation]) => operation !== 'heartbeat')
    .map(([operation, each]) => `${operation} ${(each.readUnits / ticks).toFixed(1)}`)
  console.log(
    `${name}: ${perTick(readUnits).toFixed(1)} read units and ${perTick(writeUnits - heartbeats.writeUnits).toFixed(2)} write units a tick, ` +
      `${usd.toFixed(2)} USD a month; ${(ms / ticks).toFixed(0)} ms a tick here\n  read units: ${parts.join(', ')}`,
  )
  await close()
}

try {
  for (const fleet of fleets) await measure(fleet)
} finally {
  await running.stop()
}
