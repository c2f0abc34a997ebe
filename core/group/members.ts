import { BlockList, isIP } from 'node:net'
import type { GroupSettings, GroupSnapshot, Member } from '../model.ts'

/**
 * The members that may be given queues: not denied, allowed, the ones who hold their places, and so many at most as the
 * group takes, the ones that joined first. The others are on standby: they are there when one of these leaves.
 */
export function selectMembers({ group, members }: Pick<GroupSnapshot, 'group' | 'members'>): Member[] {
  const isAllowed = createIpCheck(group)
  const replaced = replacedMembers(members)
  const able = members
    .filter(member => !replaced.has(member.consumerId) && !isAnnounced(member) && isAllowed(member.ip))
    .sort((a, b) => a.joinedAtMs - b.joinedAtMs || a.consumerId - b.consumerId)
  return group.maxConsumers > 0 ? able.slice(0, group.maxConsumers) : able
}

/** It wants a place, and has not looked yet whether another one does (`join.ts`). */
const isAnnounced = ({ instanceId, predecessors }: Member) => instanceId !== undefined && predecessors === undefined

/**
 * Who was replaced, by whom. A place is held by the one that registered last. What those had who were there before it is
 * its own, whether they are members still or have been let go.
 */
export function replacedMembers(members: readonly Member[]): Map<number, number> {
  const placeOf = new Map(members.map(({ consumerId, instanceId }) => [consumerId, instanceId]))
  const confirmed = members.filter(member => member.instanceId !== undefined && !isAnnounced(member))
  const replaced = new Map<number, number>()
  for (const [instanceId, atPlace] of Map.groupBy(confirmed, member => member.instanceId)) {
    const holder = Math.max(...atPlace.map(member => member.consumerId))
    for (const id of atPlace.flatMap(({ consumerId, predecessors = [] }) => [consumerId, ...predecessors])) {
      // Whoever has another place by now, or none, is not replaced any more.
      const isFormer = id !== holder && (!placeOf.has(id) || placeOf.get(id) === instanceId)
      if (isFormer) replaced.set(id, holder)
    }
  }
  return replaced
}

/** Whether an address is on the one list, or the list is empty, and not on the other. Whole addresses are compared. */
export function createIpCheck({ allowedIps, deniedIps }: GroupSettings): (ip: string) => boolean {
  if (allowedIps.length === 0 && deniedIps.length === 0) return () => true
  const [allowed, denied] = [listOf(allowedIps), listOf(deniedIps)]
  return ip => {
    const family = familyOf(ip)
    // What is no address is on no list.
    if (family === undefined) return allowedIps.length === 0
    return !denied.check(ip, family) && (allowedIps.length === 0 || allowed.check(ip, family))
  }
}

function listOf(entries: readonly string[]): BlockList {
  const list = new BlockList()
  for (const entry of entries) {
    const parsed = parseIpRange(entry)
    if (parsed) list.addSubnet(parsed.address, parsed.prefix, parsed.family)
  }
  return list
}

type Family = 'ipv4' | 'ipv6'

/** An address, or a range in CIDR notation; undefined: neither. */
export function parseIpRange(text: string): { address: string; prefix: number; family: Family } | undefined {
  const [address = '', prefixText, ...rest] = text.split('/')
  const family = familyOf(address)
  // A zone ("fe80::1%eth0") says something on one host only.
  if (family === undefined || address.includes('%') || rest.length > 0) return undefined
  const longest = family === 'ipv4' ? 32 : 128
  if (prefixText === undefined) return { address, prefix: longest, family }
  const prefix = Number(prefixText)
  return /^\d{1,3}$/.test(prefixText) && prefix <= longest ? { address, prefix, family } : undefined
}

const familyOf = (address: string): Family | undefined =>
  ({ 0: undefined, 4: 'ipv4' as const, 6: 'ipv6' as const })[isIP(address)]
