import { dynoxide } from '../test/support/engines.ts'
import { type Fleet, openIdleFleet } from '../test/support/idle-fleet.ts'

/**
 * What a tick costs a fleet in which nothing happens: DynamoDB's units as it counts them, of two hours of ticks by the real
 * code after two hours by which it has found out that nothing happens. Prices of us-east-1 on demand, December 2026.
 *
 *     npm run bench:tick -- [what the name of a fleet begins with]
 */
const fleets: (Omit<Fleet, 'batchBytes'> & { name: string })[] = [
  { name: '1,000 groups, 4 queues each, nobody running', groups: 1_000, queues: 4, hasMembers: false },
  { name: '100 groups, 4 queues each, a consumer each', groups: 100, queues: 4, hasMembers: true },
  { name: '10 groups, 50 queues each, a consumer each', groups: 10, queues: 50, hasMembers: true },
  { name: '10 groups, 50 queues each, nobody running', groups: 10, queues: 50, hasMembers: false },
  { name: '10,000 groups, 4 queues each, nobody running', groups: 10_000, queues: 4, hasMembers: false },
]
const readUsd = 0.125e-6
const writeUsd = 0.625e-6
const ticksPerMonth = 30 * 24 * 60
const minutes = { before: 120, measured: 120 }
const batchBytes = 8_000

const wanted = process.argv[2] ?? ''
const engine = dynoxide()
if (engine.skip) throw new Error(engine.skip)
const running = await engine.start()

try {
  for (const { name, ...fleet } of fleets) {
    if (!name.startsWith(wanted)) continue
    const { meter, tick, close } = await openIdleFleet(running, { ...fleet, batchBytes })
    // What a container that knows nothing begins with.
    const first = await tick(15)
    await tick(minutes.before)
    meter.clear()
    const ms = await tick(minutes.measured)
    const parts = Object.entries(meter.all())
      // Those are the consumers' own cost.
      .filter(([operation]) => operation !== 'heartbeat')
      .map(([operation, sums]) => ({ operation, ...sums }))
    const perTick = (of: 'readUnits' | 'writeUnits' | 'requests') =>
      parts.reduce((sum, part) => sum + part[of], 0) / minutes.measured
    const usd = (perTick('readUnits') * readUsd + perTick('writeUnits') * writeUsd) * ticksPerMonth
    const figures = [
      `${perTick('readUnits').toFixed(1)} read units`,
      `${perTick('writeUnits').toFixed(2)} write units`,
      `${perTick('requests').toFixed(0)} requests a tick`,
      `${usd.toFixed(2)} USD a month`,
      `a tick takes ${(ms.reduce((sum, each) => sum + each) / ms.length).toFixed(0)} ms here`,
      `of the first 15 the longest ${Math.max(...first).toFixed(0)}`,
    ]
    console.log(`${name}: ${figures.join(', ')}`)
    const units = parts.map(({ operation, readUnits }) => `${operation} ${(readUnits / minutes.measured).toFixed(1)}`)
    console.log(`  read units: ${units.join(', ')}`)
    await close()
  }
} finally {
  await running.stop()
}
