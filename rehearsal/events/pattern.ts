import { asList, asRecord } from '../template/read.ts'

/** Tells whether an event fits an event pattern of EventBridge. */
export type EventPattern = (event: unknown) => boolean

/**
 * Reads an event pattern: fields by name, each with a list of values of which one has to be there, `{ prefix }` or
 * `{ exists }`. Whatever else EventBridge has is refused, since a rule that silently never fits would look well.
 */
export function parsePattern(pattern: unknown, place: string): EventPattern {
  const fields = Object.entries(asRecord(pattern, place)).map(([name, expected]) => {
    if (name.startsWith('$')) throw new Error(`the rehearsal does not know ${name} in the event pattern of ${place}`)
    return { name, fits: Array.isArray(expected) ? parseValues(expected, place) : parsePattern(expected, place) }
  })
  return event => {
    const values: Record<string, unknown> = typeof event === 'object' && event !== null ? { ...event } : {}
    return fields.every(({ name, fits }) => fits(values[name]))
  }
}

function parseValues(expected: unknown[], place: string): EventPattern {
  const tests = expected.map(each => parseValue(each, place))
  // A field that is a list fits by any of its values.
  return actual =>
    tests.some(test =>
      test.ofAbsent === undefined ? asList(actual).some(test.fits) : test.ofAbsent === (actual === undefined),
    )
}

type Test = { fits: (actual: unknown) => boolean; ofAbsent?: boolean }

function parseValue(expected: unknown, place: string): Test {
  if (typeof expected !== 'object' || expected === null) return { fits: actual => actual === expected }
  const [[name, value] = []] = Object.entries(expected)
  if (name === 'prefix' && typeof value === 'string') {
    return { fits: actual => typeof actual === 'string' && actual.startsWith(value) }
  }
  if (name === 'exists' && typeof value === 'boolean') return { fits: () => false, ofAbsent: !value }
  throw new Error(`the rehearsal does not know ${JSON.stringify(expected)} in the event pattern of ${place}`)
}
