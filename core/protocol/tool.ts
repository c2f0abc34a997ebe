import * as v from 'valibot'
import { baseResponse } from './fields.ts'

/** What PMQ's clients report of themselves. Accepted whatever it holds, since they send it without looking back. */
export const toolRequest = v.record(v.string(), v.unknown())
export const toolResponse = v.object(baseResponse)

export type ToolResponse = v.InferOutput<typeof toolResponse>
