export type InTurn = <T>(name: string, act: () => Promise<T>) => Promise<T>

/**
 * Runs what has one name one after the other, within this container. DynamoDB cancels a transaction that meets another
 * one at an item, also at an item that both only look at: use cases that change many queues of a group at once would
 * stand in their own way, however often they try.
 */
export function createTurns(): InTurn {
  const lasts = new Map<string, Promise<void>>()
  return (name, act) => {
    const before = lasts.get(name)
    const run = before === undefined ? act() : before.then(act)
    const leave = () => {
      if (lasts.get(name) === last) lasts.delete(name)
    }
    const last = run.then(leave, leave)
    lasts.set(name, last)
    return run
  }
}
