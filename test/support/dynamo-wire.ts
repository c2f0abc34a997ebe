import { Readable } from 'node:stream'
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'

/** What the SDK's client sends and receives, seen from its request handler. */
export type Handler = DynamoDBClient['config']['requestHandler']
export type WireRequest = Parameters<Handler['handle']>[0]
export type WireOptions = Parameters<Handler['handle']>[1]
export type WireAnswer = Awaited<ReturnType<Handler['handle']>>

export type Json = { [name: string]: JsonValue }
export type JsonValue = string | number | boolean | null | JsonValue[] | Json

/** The operation of a request: `PutItem`, say. */
export function targetOf(request: WireRequest): string {
  const target = request.headers['x-amz-target'] ?? ''
  return target.slice(target.indexOf('.') + 1)
}

export function textOf(request: WireRequest): string {
  const body: string | Uint8Array = request.body
  return typeof body === 'string' ? body : new TextDecoder().decode(body)
}

export const bodyOf = (request: WireRequest): Json => JSON.parse(textOf(request))

/** The request with another body. Its signature no longer fits, which the engines on this machine do not look at. */
export function withBody(request: WireRequest, body: Json): WireRequest {
  const text = JSON.stringify(body)
  const changed: WireRequest = Object.create(request)
  changed.body = text
  changed.headers = { ...request.headers, 'content-length': String(Buffer.byteLength(text)) }
  return changed
}

export async function readAnswer({ response }: WireAnswer): Promise<{ status: number; text: string }> {
  const chunks: Buffer[] = []
  for await (const chunk of response.body as Readable) chunks.push(Buffer.from(chunk))
  return { status: response.statusCode, text: Buffer.concat(chunks).toString() }
}

export const makeAnswer = (status: number, text: string): WireAnswer => ({
  response: {
    statusCode: status,
    headers: { 'content-type': 'application/x-amz-json-1.0', 'content-length': String(Buffer.byteLength(text)) },
    body: Readable.from([Buffer.from(text)]),
  },
})

export const makeError = (status: number, type: string, more: Json = {}): WireAnswer =>
  makeAnswer(status, JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${type}`, message: type, ...more }))
