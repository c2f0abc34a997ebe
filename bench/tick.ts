import { subscribe } from '../core/admin/subscriptions.ts'
import { createTopic } from '../core/admin/topics.ts'
import { type Core, createCore, defaultSettings } from '../core/core.ts'
import { forEachOf } from '../core/for-each-of.ts'
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
 * code after two hours by which it has found out that nothing happens. Prices of us-east-1 on demand, December 2026.
 *
 * Each group has a topic of its own and its fail topic. What is in the topic's queues, a batch of 8 KB each, is handled.
 *
 *     npm run bench:tick -- [what the name of a fleet begins with]
 */
type Fleet = { name: string; groups: number; queues: number; hasMembers: boolean }

const fleets: Fleet[] = [
  { name: '1,000 groups, 4 queues each, nobody running', groups: 1_000, queues: 4, hasMembers: false },
  { name: '1,000 groups, 4 queues each, a consumer each', groups: 1_000, queues: 4, hasMembers: true },
  { name: '10 groups, 50 queues each, a consumer each', groups: 10, queues: 50, hasMembers: true },
  { name: '10 groups, 50 queues each, nobody running', groups: 10, queues: 50, hasMembers: false },
  { name: '10,000 groups, 4 queues each, nobody running', groups: 10_000, queues: 4, hasMembers: false },
]
const readUsd = 0.125e-6
const writeUsd = 0.625e-6
const ticksPerMonth = 30 * 24 * 60
const hours = { before: 2, measured: 2 }
const minuteMs = 60_000
const batchBytes = 8_000

const wanted = process.argv[2] ?? ''
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

  async function makeGroup(i: number): Promise<void> {
    const [topicName, groupName] = [`topic-${i}`, `group-${i}`]
    await createTopic(core, { name: topicName, queues, retentionMs: 7 * 86_400_000 })
    await forEachOf((await store.readTopic(topicName))?.queues ?? [], ({ queueId }) =>
      store.appendBatch({
        queueId,
        base: 1,
        count: 100,
        publishId: 'p',
        appendedAtMs: clock.now(),
        expiresAtMs: clock.now() + 7 * 86_400_000,
        codec: 0,
        bytes: new Uint8Array(batchBytes),
      }),
    )
    await store.createGroup(newGroup(groupName, clock.now()))
    await subscribe(core, groupName, topicName, {})
    if (!hasMembers) return
    const consumer = { consumerId: i + 1, name: `c${i}`, ip: '10.0.0.1', sdkVersion: '1', lan: 'node', groupNames: [] }
    const consumerId = await store.registerConsumer({ ...consumer, heartbeatAtMs: clock.now() })
    const joinedAtMs = clock.now()
    const member = { groupName, consumerId, consumerName: `c${i}`, ip: '10.0.0.1', topicNames: [topicName], joinedAtMs }
    await store.joinGroup(member)
    await store.askRebalance(groupName)
    consumerIds.push(consumerId)
  }
  await forEachOf(
    Array.from({ length: groups }, (_, i) => i),
    makeGroup,
  )

  async function run(forHours: number): Promise<number[]> {
    const ms: number[] = []
    for (let minute = 0; minute < forHours * 60; minute++) {
      clock.advance(minuteMs)
      await forEachOf(consumerIds, consumerId => store.heartbeat(consumerId, clock.now()))
      const startedAt = performance.now()
      const { failed, left } = await tick(core)
      ms.push(performance.now() - startedAt)
      if (failed.length > 0 || left > 0) throw new Error(`${failed.length} failed, ${left} left: ${failed[0]?.cause}`)
    }
    return ms
  }
  await run(hours.before)
  meter.clear()
  const ms = await run(hours.measured)
  const parts = Object.entries(meter.all())
    // Those are the consumers' own cost.
    .filter(([operation]) => operation !== 'heartbeat')
    .map(([operation, sums]) => ({ operation, ...sums }))
  const perTick = (of: 'readUnits' | 'writeUnits' | 'requests') =>
    parts.reduce((sum, part) => sum + part[of], 0) / ms.length
  const usd = (perTick('readUnits') * readUsd + perTick('writeUnits') * writeUsd) * ticksPerMonth
  const figures = [
    `${perTick('readUnits').toFixed(1)} read units`,
    `${perTick('writeUnits').toFixed(2)} write units`,
    `${perTick('requests').toFixed(0)} requests a tick`,
    `${usd.toFixed(2)} USD a month`,
    `${(ms.reduce((sum, each) => sum + each) / ms.length).toFixed(0)} ms a tick here, at most ${Math.max(...ms).toFixed(0)}`,
  ]
  console.log(`${name}: ${figures.join(', ')}`)
  const units = parts.map(({ operation, readUnits }) => `${operation} ${(readUnits / ms.length).toFixed(1)}`)
  console.log(`  read units: ${units.join(', ')}`)
  await close()
}

try {
  for (const fleet of fleets) if (fleet.name.startsWith(wanted)) await measure(fleet)
} finally {
  await running.stop()
}
