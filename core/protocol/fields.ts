import * as v from 'valibot'
import { limits } from './limits.ts'

/** Building blocks of the schemas. Absent and `null` mean the same, since Java clients may send either. */
export const optional = <const S extends v.GenericSchema>(schema: S) => v.nullish(schema)

export const text = (maxLength: number) => v.pipe(v.string(), v.maxLength(maxLength))

/** An id or an offset: a whole number that JSON and JavaScript carry exactly. */
export const wholeNumber = (min = 0, max: number = Number.MAX_SAFE_INTEGER) =>
  v.pipe(v.number(), v.safeInteger(), v.minValue(min), v.maxValue(max))

export const name = v.pipe(
  v.string(),
  v.regex(limits.namePattern, 'must be 1 to 100 characters of A-Z, a-z, 0-9, dot, underscore and hyphen'),
)

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
