import { BlockList, isIP } from 'node:net'
import { parseIpRange } from '../group/members.ts'

/**
 * What an address is to a sender of webhooks. `local`: this machine and private networks. `never`: what is no host's own
 * address, what stands for another address, and what answers with the credentials of the machine that asks.
 */
export type AddressKind = 'public' | 'local' | 'never'

/**
 * Tells by the registries of IANA. Of IPv6 only what is given out as global unicast can be public, so that a form that
 * is thought of later is not: addresses that hold one of IPv4 (`::ffff:10.0.0.1`, NAT64, 6to4, Teredo) are never targets.
 */
export function addressKind(address: string): AddressKind {
  const family = isIP(address)
  // With a zone ("fe80::1%eth0") it is an address of this host's links.
  if (family === 0 || address.includes('%')) return 'never'
  if (isNever(address)) return 'never'
  if (isLocal(address)) return 'local'
  return family === 4 || isGlobalUnicast(address) ? 'public' : 'never'
}

/** Tells whether an address is in one of these ranges. What is no range is passed over. */
export function createRangeCheck(ranges: readonly string[]): (address: string) => boolean {
  // A list for each family: one for both takes `::ffff:10.0.0.1` for `10.0.0.1`, which would be named local here.
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() }
  for (const range of ranges) {
    const parsed = parseIpRange(range)
    if (parsed) lists[parsed.family].addSubnet(parsed.address, parsed.prefix, parsed.family)
  }
  return address => {
    const family = isIP(address)
    if (family === 0 || address.includes('%')) return false
    return family === 4 ? lists.ipv4.check(address, 'ipv4') : lists.ipv6.check(address, 'ipv6')
  }
}

const isGlobalUnicast = createRangeCheck(['2000::/3'])

const isLocal = createRangeCheck([
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '127.0.0.0/8',
  // Carriers', and those of many a cloud's inside.
  '100.64.0.0/10',
  '::1/128',
  'fc00::/7',
])

const isNever = createRangeCheck([
  '0.0.0.0/8',
  // Link-local, and with it 169.254.169.254: the metadata of most clouds. Then theirs that are elsewhere.
  '169.254.0.0/16',
  'fe80::/10',
  '100.100.100.200/32',
  '168.63.129.16/32',
  'fd00:ec2::/32',
  'fd20:ce::254/128',
  // Protocols' own, documentation, benchmarks, what was 6to4's relay, multicast, reserved, broadcast.
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Within global unicast: Teredo, ORCHID and other protocols' own, documentation, 6to4, AS112.
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '2620:4f:8000::/48',
  '3fff::/20',
])
