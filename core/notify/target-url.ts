import { isIP } from 'node:net'
import { callbackPath, createCallbackCheck, type NetworkPolicy, refuseAddress } from './network-policy.ts'

export type { NetworkPolicy } from './network-policy.ts'

/** Long enough for every receiver, and short enough for every record and log. */
export const maxTargetUrlLength = 2_048

/**
 * Why a URL cannot be a target; undefined: it can. By its text alone: what a name resolves to is known when a connection is
 * made, and looked at then. The answer says nothing of path and query, which may hold a secret.
 */
export function refuseTargetUrl(text: string, policy: NetworkPolicy): string | undefined {
  const parsed = parseTargetUrl(text)
  if (typeof parsed === 'string') return parsed
  if (isCallback(parsed, policy)) return undefined
  const { protocol, port, hostname } = parsed
  if (protocol === 'http:' && !policy.allowHttp) return 'url begins with http:; it must begin with https:'
  const portNumber = portOf({ protocol, port })
  if (!policy.ports.includes(portNumber)) return `url has port ${portNumber}; it must be ${listOf(policy.ports)}`
  const host = bare(hostname)
  if (isIP(host) === 0) return refuseName(host, policy)
  const refusal = refuseAddress(host, policy)
  return refusal && `url is at ${host}, which is ${refusal}; give a public one`
}

/** The URL as the sender takes it; or what is wrong with it in every network. */
export function parseTargetUrl(text: string): URL | string {
  if (text.length > maxTargetUrlLength)
    return `url has ${text.length} characters; at most ${maxTargetUrlLength} are accepted`
  // What the URL standard takes out or turns round without a word hides from people what a URL is.
  if (unseen.test(text)) return 'url has spaces, control characters or backslashes; they must be percent-encoded'
  if (!/^https?:/i.test(text)) return 'url must begin with https:// (or http://, where that is allowed)'
  if (!/^https?:\/\/[^/]/i.test(text) || !URL.canParse(text))
    return 'url is not a URL; such as https://example.com/hook would be'
  if (/^[^/]*\/\/[^/?#]*@/.test(text)) return 'url carries a user name or password, or an empty one; leave it out'
  if (text.includes('#')) return 'url has a fragment, which would not be sent; leave it out'
  const url = new URL(text)
  // The same host by another name, to certificates and to lists of names.
  if (url.hostname.endsWith('.')) return 'the host of url ends with a dot; leave it out'
  return url
}

/** Whether it is what PMQ's clients listen at, in a network that the operator has named. */
export function isCallback(url: URL, policy: NetworkPolicy): boolean {
  const isCallbackPath = url.protocol === 'http:' && url.pathname === callbackPath && url.search === ''
  return isCallbackPath && policy.callbackNetworks.length > 0 && createCallbackCheck(policy)(bare(url.hostname))
}

/** A host without the brackets that a URL puts around IPv6. */
export const bare = (hostname: string) => hostname.replace(/^\[(.*)\]$/, '$1')

/** Port 0 is none: a URL that leaves its port out has that of its scheme. */
export const portOf = ({ protocol, port }: { protocol: string; port: string }): number =>
  port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)

// biome-ignore lint/suspicious/noControlCharactersInRegex: it is they that are looked for.
const unseen = /[\u0000-\u0020\u007f-\u00a0\u2028\u2029\ufeff\\]/

/** Names that are this machine's or its network's by their form. A name without a dot is looked for in the own domain. */
const localNames = /^[^.]+$|(^|\.)(localhost|localdomain|local|internal|intranet|lan|home\.arpa)$/

function refuseName(name: string, { allowPrivate }: NetworkPolicy): string | undefined {
  if (allowPrivate || !localNames.test(name)) return undefined
  return `url is at ${name}, which is a name of a private network; give a public one`
}

function listOf(ports: readonly number[]): string {
  const shown = ports.slice(0, 10).join(' or ')
  return ports.length > 10 ? `${shown} or another that was allowed` : shown || 'one that was allowed, and none is'
}
