import { isIP } from 'node:net'
import type { Core } from '../../../core/core.ts'
import { consumerCopyName } from '../../../core/group/copy-names.ts'
import { createLru } from '../../../core/lru.ts'
import type { GroupSnapshot, Member } from '../../../core/model.ts'
import { callbackPath } from '../../../core/notify/network-policy.ts'
import type { Reach, Reached } from './reach.ts'

/** Where PMQ's client of a member listens: the address and port of `ip|pid|milliseconds|port`. Undefined: it says none. */
export function callbackUrlOf({ consumerName }: Pick<Member, 'consumerName'>): string | undefined {
  const [ip = '', , , port = ''] = consumerName.split('|')
  const isPort = /^[1-9]\d{0,4}$/.test(port) && Number(port) <= 65_535
  if (isIP(ip) === 0 || !isPort) return undefined
  return `http://${isIP(ip) === 6 ? `[${ip}]` : ip}:${port}${callbackPath}`
}

/** A client that has not answered gets one trial in so many milliseconds, as PMQ has it. */
const failingPauseMs = 5_000
const maxRemembered = 10_000

export type CallbackFailure = Reached & { url: string }

/**
 * Tells PMQ's clients of a group that queues have messages: each the owner of a queue; in a broadcast group all. Nothing is
 * repeated, since they ask by themselves as well. Answers with what has failed.
 */
export function createCallbacks(core: Core, reach: Reach) {
  const openUntilMs = createLru<string, number>(maxRemembered)

  async function call(url: string, body: string, deliveryId: string, timeoutMs: number): Promise<CallbackFailure[]> {
    const failingUntilMs = openUntilMs.get(url)
    if (failingUntilMs !== undefined) {
      if (failingUntilMs > core.clock.now()) return []
      // This is the trial; the others wait for what comes of it.
      openUntilMs.set(url, core.clock.now() + failingPauseMs)
    }
    const reached = await reach({ kind: 'callback', url, secrets: [] }, { deliveryId, body, timeoutMs })
    if (reached.outcome === 'succeeded') openUntilMs.delete(url)
    else openUntilMs.set(url, core.clock.now() + failingPauseMs)
    return reached.outcome === 'failed' ? [{ ...reached, url }] : []
  }

  return async (
    snapshot: GroupSnapshot,
    queueIds: readonly number[],
    deliveryId: string,
    timeoutMs: number,
  ): Promise<CallbackFailure[]> => {
    const hints = hintsByUrl(snapshot, queueIds)
    const calls = Array.from(hints, ([url, msgNotifyDtos]) =>
      call(url, JSON.stringify({ msgNotifyDtos }), deliveryId, timeoutMs),
    )
    return (await Promise.all(calls)).flat()
  }
}

type Hint = { queueId: number; consumerGroupName: string }

function hintsByUrl({ group, members, offsets }: GroupSnapshot, queueIds: readonly number[]): Map<string, Hint[]> {
  const hints = new Map<string, Hint[]>()
  for (const member of members) {
    const url = callbackUrlOf(member)
    if (url === undefined) continue
    const isBroadcast = group.mode === 'broadcast'
    const consumerGroupName = isBroadcast ? consumerCopyName(group.name, member.consumerId) : group.name
    const owned = isBroadcast
      ? queueIds
      : queueIds.filter(id =>
          offsets.some(({ queueId, consumerId }) => queueId === id && consumerId === member.consumerId),
        )
    if (owned.length === 0) continue
    hints.set(url, [...(hints.get(url) ?? []), ...owned.map(queueId => ({ queueId, consumerGroupName }))])
  }
  return hints
}
