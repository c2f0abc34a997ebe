import type { FailedMessage, FirstPlace } from './records.ts'

/** What a failed message is called outside: when and where it came into the fail topic first. */
export const idOf = ({ first: { atMs, queueId, offset } }: Pick<FailedMessage, 'first'>): string =>
  `${atMs}-${queueId}-${offset}`

/** The reverse; the protocol's schema has checked its form. */
export function firstOfId(failedId: string): FirstPlace {
  const [atMs = 0, queueId = 0, offset = 0] = failedId.split('-').map(Number)
  return { atMs, queueId, offset }
}
