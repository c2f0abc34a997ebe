/**
 * One JSON line for each thing that went wrong; nothing is logged for what went well, since log bytes are paid for.
 * Fields name what it was about; never messages, tokens or whole requests.
 */
export function logError(what: string, fields: Record<string, string | number | undefined>, error: unknown): void {
  console.error(JSON.stringify({ level: 'error', what, ...fields, error: describe(error) }))
}

/** `JSON.parse` quotes the text that it could not read, which may be a message. */
const quoted = 'not JSON'

type Described = { name: string; message: string; stack?: string; cause?: Described }

function describe(error: unknown): Described {
  if (!(error instanceof Error)) return { name: typeof error, message: String(error) }
  const { name, cause } = error
  const isQuoting = error instanceof SyntaxError
  const message = isQuoting ? quoted : error.message
  const stack = isQuoting ? error.stack?.replace(error.message, quoted) : error.stack
  return { name, message, ...(stack && { stack }), ...(cause !== undefined && { cause: describe(cause) }) }
}
