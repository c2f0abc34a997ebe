import type { Order, Report } from './pool.ts'
import { simulate } from './simulate.ts'

/** A process that plays the seeds that it is sent, one at a time, and reports each. */
let playing: number | undefined

process.on('message', async ({ seed, changes }: Order) => {
  // Faults are many here, and their stacks cost more than all the rest of them.
  Error.stackTraceLimit = 0
  playing = seed
  const { findings, digest, history } = await simulate(seed, changes)
  // A run that somebody else's failure has ended already is reported.
  if (playing === undefined) return
  report({ seed, findings, digest, events: history.length, isLast: false })
})

/** Nothing of a run may throw where nobody catches it; a process in which something has is of no use any more. */
function fail(thrown: unknown) {
  if (playing === undefined) return
  const text = `nobody caught ${thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)}`
  report({ seed: playing, findings: [{ property: 'defect', text }], digest: '', events: 0, isLast: true })
  playing = undefined
  process.exitCode = 1
  if (process.connected) process.disconnect()
}

process.on('uncaughtException', fail)
process.on('unhandledRejection', fail)

function report(about: Report) {
  process.send?.(about)
}
