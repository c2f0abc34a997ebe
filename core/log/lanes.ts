/** Runs what appends to a queue, when it is its turn. */
export type InTurn = <T>(queueId: number, append: () => Promise<T>) => Promise<T>

/** Runs the appends of one queue one after the other, those of different queues at once. */
export function createLanes(): InTurn {
  const lanes = new Map<number, Promise<unknown>>()
  return (queueId, append) => {
    const before = lanes.get(queueId) ?? Promise.resolve()
    const run = before.then(append)
    const settled = run.catch(() => undefined)
    lanes.set(queueId, settled)
    settled.then(() => {
      if (lanes.get(queueId) === settled) lanes.delete(queueId)
    })
    return run
  }
}
