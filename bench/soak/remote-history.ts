import type { History } from '../../test/checker/history.ts'

type Method = Exclude<keyof History, 'events'>

/** A call of a history's method, as it travels from the process where it happens to the one that keeps it. */
export type Entry = { atMs: number; method: Method; args: unknown[] }

const methods: Record<Method, true> = {
  publishInvoke: true,
  publishOk: true,
  publishFail: true,
  publishInfo: true,
  publishStored: true,
  pullOk: true,
  handleStart: true,
  handleEnd: true,
  commitInvoke: true,
  commitOk: true,
  commitInfo: true,
  assignmentGained: true,
  assignmentLost: true,
  suspected: true,
  resetInvoke: true,
  resetOk: true,
  retryRules: true,
  trim: true,
  begins: true,
  subscribed: true,
  unsubscribed: true,
  queuesChanged: true,
  crashed: true,
  drained: true,
}

/**
 * A history of which this process keeps nothing, so that recording does not show in its heap. Each call records one event,
 * so a counter here gives the numbers that `replay` gives there.
 */
export function createRemoteHistory(now: () => number, send: (entry: Entry) => void): History {
  let seq = 0
  const remote = Object.keys(methods).map(method => {
    const record = (...args: unknown[]) => {
      send({ atMs: now(), method: method as Method, args })
      return seq++
    }
    return [method, record]
  })
  return { events: [], ...Object.fromEntries(remote) }
}

/** Does with the history that is kept what was done with the remote one. */
export function replay(history: History, { method, args }: Entry): void {
  const record = history[method] as (...args: unknown[]) => number
  record(...args)
}
