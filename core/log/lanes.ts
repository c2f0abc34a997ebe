/** Runs what appends to a queue, when it is its turn. */
export type InTurn = <T>(queueId: number, append: (hasWaited: boolean) => Promise<T>) => Promise<T>

/** Runs the appends of one queue one after the other, those of different queues at once. */
export function createLanes(): InTurn {
  const lanes = new Map<number, Promise<unknown>>()
  return (queueId, append) => {
    const before = lanes.get(queueId)
    const run = before === undefined ? append(false) : before.then(() => append(true))
    // Before whoever awaits the run goes on: its next append has nothing to wait for.
    const leave = () => {
      if (lanes.get(queueId) === settled) lanes.delete(queueId)
    }
    const settled = run.then(leave, leave)
    lanes.set(queueId, settled)
    return run
  }
}
