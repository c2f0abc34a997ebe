import { PmqClientError } from './errors.ts'

/** Says what would be accepted, or nothing if the value is. */
export type Check = (value: unknown) => string | undefined

/** A whole number within bounds, both included. */
export const wholeNumber =
  (min: number, max: number): Check =>
  value =>
    Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max
      ? undefined
      : `a whole number from ${min} to ${max}`

/** One of some words. */
export const oneOf =
  (...words: readonly string[]): Check =>
  value =>
    typeof value === 'string' && words.includes(value) ? undefined : words.map(word => `'${word}'`).join(' or ')

/** True or false. */
export const isBoolean: Check = value => (typeof value === 'boolean' ? undefined : 'true or false')

/** A function. */
export const isFunction: Check = value => (typeof value === 'function' ? undefined : 'a function')

/** A non-empty text. */
export const isText: Check = value => (typeof value === 'string' && value !== '' ? undefined : 'a non-empty string')

/** A text that matches; `accepted` says in words what does. */
export const matching =
  (pattern: RegExp, accepted: string): Check =>
  value =>
    typeof value === 'string' && pattern.test(value) ? undefined : accepted

/** An object that is neither null nor an array. */
export const isObject: Check = value =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? undefined : 'an object'

/**
 * Checks what the user gave and fills in the defaults. Unknown names are refused, since a misspelt option would
 * otherwise be ignored in silence. `undefined` counts as not given.
 */
export function resolveOptions<T extends object>(
  what: string,
  given: object,
  defaults: T,
  checks: Record<string, Check>,
): T {
  if (isObject(given)) throw invalidOption(`${what}: its options must be an object`)
  const resolved = { ...defaults } as Record<string, unknown>
  for (const [name, value] of Object.entries(given)) {
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined
    if (!check)
      throw invalidOption(`${what}: unknown option "${name}"; there are ${Object.keys(checks).sort().join(', ')}`)
    if (value === undefined) continue
    const accepted = check(value)
    if (accepted) throw invalidOption(`${what}: ${name} is ${show(value, check)}; it must be ${accepted}`)
    resolved[name] = value
  }
  return resolved as T
}

/** The error of a wrong option. */
export function invalidOption(message: string): PmqClientError {
  return new PmqClientError('invalid_options', message)
}

/** A text that came in the place of an object or a function may be a secret that belongs inside it. */
function show(value: unknown, check: Check): string {
  if (typeof value === 'string' && (check === isObject || check === isFunction)) return 'a string'
  if (typeof value === 'string') return JSON.stringify(value.length > 100 ? `${value.slice(0, 100)}…` : value)
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return typeof value === 'function' ? 'a function' : String(value)
}
