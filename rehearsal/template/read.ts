/** What a value of the template has to be; whatever else it is stops the rehearsal with the place where it stands. */
export type Properties = Record<string, unknown>

export function asRecord(value: unknown, place: string): Properties {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Properties
  throw refusal(place, value, 'an object')
}

export function asText(value: unknown, place: string): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  throw refusal(place, value, 'a text')
}

export function asNumber(value: unknown, place: string): number {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value
  if (typeof number === 'number' && Number.isFinite(number)) return number
  throw refusal(place, value, 'a number')
}

/** One value counts as a list of it, as in policies. */
export function asList(value: unknown): unknown[] {
  if (value === undefined) return []
  return Array.isArray(value) ? value : [value]
}

export const asTexts = (value: unknown, place: string) => asList(value).map(each => asText(each, place))

/** Refuses properties that the rehearsal does not rehearse: to leave one out silently would be to rehearse another stack. */
export function expectOnly(properties: Properties, place: string, known: readonly string[]): void {
  for (const name of Object.keys(properties)) {
    if (known.includes(name)) continue
    throw new Error(`the rehearsal does not know ${name} of ${place}; it knows ${known.join(', ')}`)
  }
}

function refusal(place: string, value: unknown, expected: string): Error {
  return new Error(`${place} of the template is ${JSON.stringify(value)}; the rehearsal expects ${expected}`)
}
