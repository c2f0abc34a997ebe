import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'

/** The addresses that a name has. Rejects if it has none. */
export type Resolve = (hostname: string) => Promise<string[]>

/**
 * Asks name servers. Not `dns.lookup`: that waits in one of four threads, which all of the process share, so four names whose
 * servers never answer would keep everybody's waiting.
 */
export function createResolve(resolver = new Resolver({ timeout: 2_000, tries: 2 })): {
  resolve: Resolve
  close(): void
} {
  return {
    async resolve(hostname) {
      const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
      // Those of IPv4 come first: where functions run there is often no other.
      const found = [v4, v6].flatMap(result => (result.status === 'fulfilled' ? result.value : []))
      if (found.length === 0 && v4.status === 'rejected') throw v4.reason
      return found
    },
    close: () => resolver.cancel(),
  }
}

/** As every program of this machine does: by its own file of hosts too. For targets that its operator has allowed. */
export async function resolveLocally(hostname: string): Promise<string[]> {
  if (isIP(hostname) !== 0) return [hostname]
  const found = await lookup(hostname, { all: true, order: 'ipv4first' })
  return found.map(({ address }) => address)
}
