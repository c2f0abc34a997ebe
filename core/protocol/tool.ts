import * as v from 'valibot'
import { baseRequest, baseResponse, listOf, mapOf, optional } from './fields.ts'

/** What PMQ's clients report of themselves. Accepted whatever it holds, since they send it without looking back. */
export const toolRequest = mapOf(v.unknown())
export const rebalanceRequest = v.object({ ...baseRequest, consumerGroupNames: optional(listOf(v.string())) })
export const ipResponse = v.string()
export const toolResponse = v.object(baseResponse)

export type RebalanceRequest = v.InferOutput<typeof rebalanceRequest>
export type ToolResponse = v.InferOutput<typeof toolResponse>
