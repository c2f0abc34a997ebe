import { addressKind, createRangeCheck } from './addresses.ts'

/** What targets may be reached. Told by the operator of the whole service, never by whoever makes a target. */
export type NetworkPolicy = {
  /** Whether what a webhook says may travel unencrypted. */
  allowHttp: boolean
  /** Whether targets may be on this machine and in private networks. */
  allowPrivate: boolean
  /** The ports that a target may have; no others. */
  ports: readonly number[]
  /**
   * Networks of PMQ's own clients, in CIDR notation: there, and nowhere else, `http://{ip}:{port}/mq/client/notify` is
   * called, whatever else the policy says.
   */
  callbackNetworks: readonly string[]
}

/** Where the service runs for others. */
export const publicTargets: NetworkPolicy = {
  allowHttp: false,
  allowPrivate: false,
  ports: [443, 8443],
  callbackNetworks: [],
}

/** Where an operator trusts whoever can make a target with all that this machine can reach. */
export const localTargets: NetworkPolicy = {
  allowHttp: true,
  allowPrivate: true,
  ports: Array.from({ length: 65_535 }, (_, index) => index + 1),
  callbackNetworks: [],
}

/** What may become a target. */
export type TargetPolicy = {
  network: NetworkPolicy
  /** Names or ARNs of the Lambda functions that this service may invoke. */
  functions: readonly string[]
}

/** Where PMQ's clients listen for hints. */
export const callbackPath = '/mq/client/notify'

/**
 * Why no webhook may be sent to an address; undefined: one may. What is asked about is where a connection goes, which is
 * only known when there is one.
 */
export function refuseAddress(address: string, { allowPrivate }: NetworkPolicy): string | undefined {
  const kind = addressKind(address)
  if (kind === 'public' || (kind === 'local' && allowPrivate)) return undefined
  return kind === 'local' ? 'a private address' : 'an address that no target has'
}

/** Tells which addresses are in the callback networks. What is a target for nobody is in none of them. */
export function createCallbackCheck({ callbackNetworks }: NetworkPolicy): (address: string) => boolean {
  const isInside = createRangeCheck(callbackNetworks)
  return address => isInside(address) && addressKind(address) !== 'never'
}
