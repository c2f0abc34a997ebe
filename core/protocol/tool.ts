import * as v from 'valibot'
import { baseResponse, mapOf } from './fields.ts'

/** What PMQ's clients report of themselves. Accepted whatever it holds, since they send it without looking back. */
export const toolRequest = mapOf(v.unknown())
export const toolResponse = v.object(baseResponse)

export type ToolResponse = v.InferOutput<typeof toolResponse>
