import { networkInterfaces } from 'node:os'

/** The version of this package, as requests carry it. */
export const sdkVersion = '0.1.0'

/** What every request says about its sender. */
export type Identity = { readonly lan: 'node'; readonly sdkVersion: string; readonly clientIp: string }

/** This process, as the service shows it. */
export function describeClient(): Identity {
  return { lan: 'node', sdkVersion, clientIp: ownAddress() }
}

/**
 * A consumer's name in PMQ's form, `ip|pid|milliseconds % 10000`. A random suffix keeps two consumers of one process
 * apart; it hangs on the third part, since a fourth would be read as the port of PMQ's push hints.
 */
export function makeConsumerName(clientIp: string, nowMs: number, random: () => number): string {
  return `${clientIp}|${process.pid}|${Math.floor(nowMs) % 10_000}-${makeSuffix(random)}`
}

/** Makes a name nobody else's: six letters and digits. */
export function makeSuffix(random: () => number): string {
  return Math.floor(random() * 36 ** 6)
    .toString(36)
    .padStart(6, '0')
}

function ownAddress(): string {
  for (const addresses of Object.values(networkInterfaces())) {
    for (const { family, internal, address } of addresses ?? []) {
      if (family === 'IPv4' && !internal) return address
    }
  }
  return '127.0.0.1'
}
