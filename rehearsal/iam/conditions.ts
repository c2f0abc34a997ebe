import { asRecord, asTexts } from '../template/read.ts'
import { matchesArn, matchesPattern } from './patterns.ts'

/** What is known of a request, by the lower-case name of the condition key. A key that is not there is absent. */
export type Context = Record<string, readonly string[]>

export type Condition = {
  operator: string
  quantifier: 'ForAllValues' | 'ForAnyValue' | undefined
  isIfExists: boolean
  key: string
  values: string[]
}

type Test = (actual: string, expected: string) => boolean
const numeric =
  (compare: (a: number, b: number) => boolean): Test =>
  (actual, expected) =>
    compare(Number(actual), Number(expected))

/** Those that hold for any of the values, and with `Not` those that hold for none. */
const tests: Record<string, Test> = {
  StringEquals: (actual, expected) => actual === expected,
  StringEqualsIgnoreCase: (actual, expected) => actual.toLowerCase() === expected.toLowerCase(),
  StringLike: (actual, expected) => matchesPattern(expected, actual),
  ArnEquals: (actual, expected) => matchesArn(expected, actual),
  ArnLike: (actual, expected) => matchesArn(expected, actual),
  Bool: (actual, expected) => actual.toLowerCase() === expected.toLowerCase(),
  NumericEquals: numeric((a, b) => a === b),
  NumericLessThan: numeric((a, b) => a < b),
  NumericLessThanEquals: numeric((a, b) => a <= b),
  NumericGreaterThan: numeric((a, b) => a > b),
  NumericGreaterThanEquals: numeric((a, b) => a >= b),
}
const negated: Record<string, string> = {
  StringNotEquals: 'StringEquals',
  StringNotEqualsIgnoreCase: 'StringEqualsIgnoreCase',
  StringNotLike: 'StringLike',
  ArnNotEquals: 'ArnEquals',
  ArnNotLike: 'ArnLike',
  NumericNotEquals: 'NumericEquals',
}

export function parseConditions(value: unknown, place: string): Condition[] {
  return Object.entries(asRecord(value, place)).flatMap(([written, keys]) => {
    const [, quantifier, operator = '', ifExists] =
      /^(?:(ForAllValues|ForAnyValue):)?(\w+?)(IfExists)?$/.exec(written) ?? []
    if (operator !== 'Null' && !(operator in tests) && !(operator in negated)) {
      throw new Error(`the rehearsal does not know the condition operator ${written} of ${place}`)
    }
    // What both mean together where the key is absent is not written down, and evaluators differ.
    if (quantifier && ifExists)
      throw new Error(`the rehearsal does not know ${written} of ${place}: a quantifier with IfExists`)
    return Object.entries(asRecord(keys, place)).map(([key, given]) => {
      const values = asTexts(given, place)
      const short = operator.startsWith('Arn') ? values.find(value => value.split(':').length < 6) : undefined
      if (short !== undefined) throw new Error(`${written} of ${place} names ${short}; an ARN has six parts`)
      return {
        operator,
        quantifier: quantifier as Condition['quantifier'],
        isIfExists: ifExists !== undefined,
        key: key.toLowerCase(),
        values,
      }
    })
  })
}

/** Whether a condition holds: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-logic-multiple-context-keys-or-values.html */
export function holds({ operator, quantifier, isIfExists, key, values }: Condition, context: Context): boolean {
  const actual = context[key] ?? []
  if (operator === 'Null') return values.includes(String(actual.length === 0))
  const test = tests[negated[operator] ?? operator]
  if (!test) throw new Error(`there is no condition operator ${operator}`)
  const isNegated = operator in negated
  const fits = (value: string) => values.some(expected => test(value, expected)) !== isNegated

  if (quantifier === 'ForAllValues') return actual.every(fits)
  if (quantifier === 'ForAnyValue') return actual.some(fits)
  const [only] = actual
  if (only === undefined) return isIfExists || isNegated
  if (actual.length > 1) throw new Error(`${key} has several values: ${operator} needs ForAllValues or ForAnyValue`)
  return fits(only)
}
