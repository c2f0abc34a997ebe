import * as v from 'valibot'
import { limits } from './limits.ts'

/** Building blocks of the schemas. Absent and `null` mean the same, since Java clients may send either. */
export const optional = <const S extends v.GenericSchema>(schema: S) => v.nullish(schema)

/** Each item costs a request to the store, or a place in a record of it. */
export const listOf = <const S extends v.GenericSchema>(item: S) =>
  v.pipe(v.array(item), v.maxLength(limits.maxNamesPerRequest))

type MapSchema<S extends v.GenericSchema> = v.RecordSchema<v.StringSchema<undefined>, S, undefined>

/**
 * A JSON object that is used as a map. Valibot's own record drops the keys `__proto__`, `constructor` and `prototype`
 * without a word, and takes an array for one. Here these are keys like any other, which does no harm since what comes
 * out has no prototype. An entry that is `null` is absent, unless its value may be `null`.
 */
export function mapOf<const S extends v.GenericSchema>(value: S): MapSchema<S> {
  const isNullable = value.type === 'nullish'
  const run: v.GenericSchema['~run'] = (dataset, config) => {
    const input = dataset.value
    if (typeof input !== 'object' || input === null || Array.isArray(input)) {
      v._addIssue(record, 'type', dataset, config)
      return dataset as unknown as v.FailureDataset<v.BaseIssue<unknown>>
    }
    const output = Object.create(null)
    const issues: v.BaseIssue<unknown>[] = []
    for (const [key, entry] of Object.entries(input)) {
      if (entry === null && !isNullable) continue
      const result = value['~run']({ value: entry }, config)
      for (const issue of result.issues ?? []) {
        const at = { type: 'unknown', origin: 'value', input, key, value: entry } as const
        issues.push({ ...issue, path: [at, ...(issue.path ?? [])] })
      }
      if (issues.length > 0 && config.abortEarly) break
      output[key] = result.value
    }
    const [first, ...others] = issues
    return first ? { typed: false, value: output, issues: [first, ...others] } : { typed: true, value: output }
  }
  const record = { ...v.record(v.string(), value), '~run': run } as MapSchema<S>
  return record
}

export const text = (maxLength: number) => v.pipe(v.string(), v.maxLength(maxLength))

/** An id or an offset: a whole number that JSON and JavaScript carry exactly. */
export const wholeNumber = (min = 0, max: number = Number.MAX_SAFE_INTEGER) =>
  v.pipe(v.number(), v.safeInteger(), v.minValue(min), v.maxValue(max))

export const name = v.pipe(v.string(), v.regex(limits.namePattern, `must be ${limits.nameRule}`))

/** What every request of a PMQ client carries. */
export const baseRequest = {
  lan: optional(text(50)),
  sdkVersion: optional(text(50)),
  clientIp: optional(text(100)),
}

/** What every answer to a PMQ client carries. `time` is in nanoseconds. */
export const baseResponse = {
  suc: v.boolean(),
  code: v.optional(v.string()),
  msg: v.optional(v.string()),
  time: v.optional(v.number()),
  serverIp: v.optional(v.string()),
}
