import { isUtf8 } from 'node:buffer'
import { type NotifyHint, readHints } from './hints.ts'
import type { Verify } from './signature.ts'

/** A request, whatever brought it. */
export type NotifyRequest = {
  method: string | undefined
  header(name: string): string | undefined
  /** Rejects if it is set up so that the bytes cannot be had. */
  readBody(maxBytes: number): Promise<Body>
}

/** The bytes as they were sent; or that there are more than may be read, or that the sender has gone. */
export type Body = Uint8Array | 'too_large' | 'cut_off'

/** All that a sender is told. */
export type NotifyStatus = 200 | 400 | 401 | 405 | 413

/** What answering is made of. */
export type AnswerDeps = {
  /** Undefined where unsigned hints are accepted. */
  verify: Verify | undefined
  maxBodyBytes: number
  onNotify(hints: readonly NotifyHint[]): unknown
  onError(error: unknown): void
}

/** Answers a request. Never rejects: whoever can reach a receiver may send it anything. */
export async function answer(deps: AnswerDeps, request: NotifyRequest): Promise<NotifyStatus> {
  if (request.method !== 'POST') return 405
  let body: Body
  try {
    body = await request.readBody(deps.maxBodyBytes)
  } catch (error) {
    deps.onError(error)
    return 400
  }
  if (body === 'too_large') return 413
  if (body === 'cut_off') return 400
  // Signatures are made of text. Bytes that are not UTF-8 would be read as the text of others, whose signature would fit.
  const text = isUtf8(body) ? Buffer.from(body).toString() : undefined
  if (deps.verify && (text === undefined || !deps.verify(request.header, text))) return 401
  const hints = text === undefined ? undefined : parseHints(text)
  if (!hints) return 400
  try {
    if (hints.length > 0) await deps.onNotify(hints)
  } catch (error) {
    deps.onError(error)
  }
  return 200
}

/** The headers that a status has of its own. */
export function headersOf(status: NotifyStatus): Record<string, string> {
  return status === 405 ? { allow: 'POST' } : {}
}

function parseHints(text: string): NotifyHint[] | undefined {
  try {
    return readHints(JSON.parse(text))
  } catch {
    return undefined
  }
}
