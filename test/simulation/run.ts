import { parseArgs } from 'node:util'
import type { Finding } from './judge.ts'
import { drawPlan, type Plan } from './plan.ts'
import { playSeeds, type Report } from './pool.ts'
import { simulate } from './simulate.ts'

const usage = `npm run simulate -- [--seeds N] [--from N]   plays N seeds (default 1000), from one on (default 1)
npm run simulate -- --seed N [--history]     plays one seed, and says what there is to it
With --cut, producers also lose connections while the service works on their publish: docs/architecture.md, known limits.`

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    history: { type: 'boolean', default: false },
    cut: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const changes: Partial<Plan> = values.cut ? { cutPublishes: true } : {}

if (values.help) console.log(usage)
else if (values.seed !== undefined) await playOne(Number(values.seed))
else await playMany(Number(values.from), Number(values.seeds))

async function playOne(seed: number) {
  const { dice: _, ...plan } = drawPlan(seed)
  console.log(JSON.stringify({ ...plan, ...changes }, undefined, 1))
  const result = await simulate(seed, changes)
  if (values.history) for (const event of result.history) console.log(JSON.stringify(event))
  const { digest, history, steps, virtualMs } = result
  console.log(`${history.length} events, ${steps} steps, ${virtualMs} ms of virtual time, digest ${digest}`)
  show(seed, result.findings)
}

async function playMany(from: number, count: number) {
  const startedAt = performance.now()
  const failed: Report[] = []
  let played = 0
  let events = 0
  const secondsSince = () => (performance.now() - startedAt) / 1000
  const everySeeds = Math.max(100, Math.ceil(count / 100))
  await playSeeds({
    from,
    count,
    changes,
    onReport(report) {
      played++
      events += report.events
      if (report.findings.length > 0) {
        failed.push(report)
        show(report.seed, report.findings)
      }
      if (played % everySeeds === 0) {
        const rate = Math.round(played / secondsSince())
        console.log(`${played} of ${count} seeds, ${failed.length} failed, ${rate} seeds/s`)
      }
      return false
    },
  })
  const seeds = failed.map(({ seed }) => seed).sort((a, b) => a - b)
  console.log(
    `${played} seeds, ${events} events, ${Math.round(secondsSince())} s; failed: ${seeds.join(', ') || 'none'}`,
  )
}

function show(seed: number, findings: readonly Finding[]) {
  if (findings.length === 0) return
  console.log(`seed ${seed} fails:`)
  for (const { text } of findings) console.log(text)
  console.log(`again: npm run simulate -- --seed ${seed}${values.cut ? ' --cut' : ''}`)
  process.exitCode = 1
}
