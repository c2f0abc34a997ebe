/** What a client is measured at: publishing or consuming, with so many messages in one call. */
export type Act = { verb: 'publish' | 'consume'; perCall: number; by?: 'key' | 'tag' }

/** What a client works by: it rests until `closed` resolves, where that is, and counts the messages that it is done with. */
export type Shift = { readonly closed: Promise<void> | undefined; messages: number }

/** Sets a client to work against the server at this address. Resolves with what ends it. */
export type Client = (address: string, act: Act, shift: Shift) => Promise<() => Promise<unknown>>

/** Names that say what to serve, since the stand-ins have nothing set up: `of-10`, `of-100-tag`. */
export const groupNameOf = ({ perCall, by }: Act) => `of-${perCall}${by ? `-${by}` : ''}`

export const topicName = 'bench'
export const queues = 4
export const tags = ['even', 'odd'] as const

/** A body of 100 bytes that differs from the others. */
export function bodyOf(n: number): string {
  return `${n}`.padEnd(100, ' an order that is paid and not delivered yet')
}

/** Keeps some callers publishing; `publish` takes the number of its first message. Returns what ends them. */
export function publishAlong(
  { perCall }: Act,
  shift: Shift,
  publish: (first: number) => Promise<unknown>,
): () => Promise<unknown> {
  let next = 0
  let isOver = false
  async function lane() {
    while (!isOver) {
      if (shift.closed) await shift.closed
      const first = next
      next += perCall
      await publish(first)
      shift.messages += perCall
    }
  }
  const lanes = Promise.all(Array.from({ length: perCall === 1 ? callersOfOne : callersOfMany }, lane))
  return () => {
    isOver = true
    return lanes
  }
}

/** Requests that a busy server works on at the same time, and jobs that have many messages each. */
const callersOfOne = 32
const callersOfMany = 8
