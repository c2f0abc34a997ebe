import type { APIGatewayProxyEventV2 } from 'aws-lambda'
import type * as v from 'valibot'
import type { Endpoint } from '../../core/protocol/endpoints.ts'
import { PmqError } from '../../core/protocol/errors.ts'
import { validate } from './validate.ts'

/**
 * The query parameters as the endpoint's schema types them. They are texts: where the schema asks for a number or a
 * boolean, one that is written so becomes one, and all else is left to the schema to refuse.
 */
export function parseQuery({ request: schema }: Endpoint, event: APIGatewayProxyEventV2): { request: unknown } {
  if (!schema) return { request: undefined }
  const { entries = {} } = schema as { entries?: Record<string, v.GenericSchema> }
  const parameters = new Map<string, unknown>()
  // The parsed parameters of the event would be those that are given twice, joined.
  for (const [name, text] of new URLSearchParams(event.rawQueryString)) {
    if (parameters.has(name)) throw new PmqError('bad_request', `${name.slice(0, 200)}: is given twice`)
    parameters.set(name, read(entries[name], text))
  }
  return { request: validate(schema, Object.fromEntries(parameters)) }
}

const wholeNumber = /^-?\d{1,16}$/
const booleans = new Map([
  ['true', true],
  ['false', false],
])

function read(schema: v.GenericSchema | undefined, text: string): unknown {
  const { type, wrapped } = (schema ?? {}) as { type?: string; wrapped?: v.GenericSchema }
  if (wrapped) return read(wrapped, text)
  if (type === 'number' && wholeNumber.test(text)) return Number(text)
  return (type === 'boolean' ? booleans.get(text) : undefined) ?? text
}
