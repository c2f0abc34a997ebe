import { AsyncResource } from 'node:async_hooks'
import { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'

/**
 * Preloaded into the process of each test file: the file fails when it ends and has left something running that would
 * keep a program alive, such as a server, a socket, a timer, a child process or a worker.
 */

/** What has been told to stop may take this long to be gone: a killed process has to be waited for by the kernel. */
const settleMs = 500
const settleStepMs = 10
/** The file's own hooks, which stop things, have this long: a failed one would otherwise keep the check from running. */
const hooksMs = 30_000

const words: Record<string, string> = {
  TCPServerWrap: 'server',
  TCPSocketWrap: 'socket',
  PipeWrap: 'pipe',
  ProcessWrap: 'child process',
  MessagePort: 'message port',
  FSEventWrap: 'file watcher',
  Timeout: 'timer',
  Immediate: 'immediate',
}

/** Threads are not among the resources that Node knows as active. */
const workers = new Set<Worker>()
process.on('worker', worker => {
  workers.add(worker)
  worker.once('exit', () => workers.delete(worker))
})

// Made before the first test, so that it belongs to none.
const outside = new AsyncResource('leaks')

if (process.env.NODE_TEST_CONTEXT !== undefined) {
  const baseline = count(running())
  // Hooks run in order of registration. The file's own come later than this one, and may be what stops things: so this
  // one registers the check when its turn has come, behind all others, and outside of itself, at the root.
  after(() => {
    outside.runInAsyncScope(() => after(() => check(baseline)))
    setTimeout(() => fail(['a hook that failed or does not end']), hooksMs).unref()
  })
  // The runner has read it by now. What the file starts is not the runner's child, and must not take itself for one.
  delete process.env.NODE_TEST_CONTEXT
}

async function check(baseline: Map<string, number>) {
  let left = leftovers(baseline)
  for (let waitedMs = 0; left.length > 0 && waitedMs < settleMs; waitedMs += settleStepMs) {
    await sleep(settleStepMs)
    left = leftovers(baseline)
  }
  if (left.length > 0) fail(left)
}

/**
 * Ends the process, which would not end by itself. The results of its tests are with the runner by now. (The runner's
 * own `--test-force-exit` is no help: it loses results on their way, and with them failures.)
 */
function fail(left: string[]): never {
  process.stderr.write(`${process.argv[1]} has left running: ${left.join(', ')}\n`)
  process.exit(1)
}

function leftovers(baseline: Map<string, number>): string[] {
  return [...count(running())]
    .map(([kind, now]) => ({ kind, more: now - (baseline.get(kind) ?? 0) }))
    .filter(({ more }) => more > 0)
    .map(({ kind, more }) => `${more} ${words[kind] ?? kind}`)
}

function running(): string[] {
  return [...process.getActiveResourcesInfo(), ...Array.from(workers, () => 'worker')]
}

function count(kinds: string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return counts
}
