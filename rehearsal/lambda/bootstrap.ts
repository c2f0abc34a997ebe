import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { FromInstance, ToInstance } from './messages.ts'

/**
 * The process of one instance of a function, as Lambda's runtime has it: loads the handler, then serves one request at a
 * time. Its environment is the function's; its clock is as far ahead as the rehearsal's.
 */
const [folder = '', handlerName = '', aheadMs = '0'] = process.argv.slice(2)
const moveClock = takeOverClock(Number(aheadMs))
const tell = (message: FromInstance) => process.send?.(message)

// The rehearsal is gone, and so is whoever would end this process.
process.once('disconnect', () => process.exit())
// Ctrl-C is meant for the rehearsal, which ends this process when it has made its report.
process.on('SIGINT', () => {})

const handler = await loadHandler().catch(error => {
  tell({ type: 'not loaded', error: describe(error) })
  return undefined
})

if (handler) {
  process.on('message', (message: ToInstance) => void serve(handler, message))
  tell({ type: 'loaded' })
}

type Handler = (event: unknown, context: object) => unknown

async function loadHandler(): Promise<Handler> {
  const [, path = '', exported = ''] = /^(.*)\.([^.]+)$/.exec(handlerName) ?? []
  const file = ['.js', '.mjs', '.cjs'].map(extension => join(folder, path + extension)).find(existsSync)
  if (file === undefined) throw new Error(`Cannot find module '${path}'`)
  const module = await import(pathToFileURL(file).href)
  const found = module[exported] ?? module.default?.[exported]
  if (typeof found !== 'function') throw new Error(`${handlerName} is undefined or not exported`)
  return found
}

async function serve(handler: Handler, { requestId, payload, deadlineMs, arn, aheadMs }: ToInstance): Promise<void> {
  moveClock(aheadMs)
  const { env } = process
  const context = {
    awsRequestId: requestId,
    callbackWaitsForEmptyEventLoop: true,
    functionName: env.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: env.AWS_LAMBDA_FUNCTION_VERSION,
    invokedFunctionArn: arn,
    logGroupName: env.AWS_LAMBDA_LOG_GROUP_NAME,
    logStreamName: env.AWS_LAMBDA_LOG_STREAM_NAME,
    memoryLimitInMB: env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    getRemainingTimeInMillis: () => deadlineMs - Date.now(),
  }
  try {
    const answer = await handler(JSON.parse(payload), context)
    tell({ type: 'returned', requestId, payload: JSON.stringify(answer) ?? 'null' })
  } catch (error) {
    tell({ type: 'failed', requestId, error: describe(error) })
  }
}

function describe(error: unknown) {
  if (!(error instanceof Error)) return { errorType: typeof error, errorMessage: String(error), trace: [] }
  return { errorType: error.name, errorMessage: error.message, trace: (error.stack ?? '').split('\n') }
}

/** Lets both of the process's clocks be set ahead. */
function takeOverClock(ms: number): (ms: number) => void {
  let aheadMs = ms
  const now = Date.now.bind(Date)
  const monotonic = performance.now.bind(performance)
  Date.now = () => now() + aheadMs
  performance.now = () => monotonic() + aheadMs
  globalThis.Date = new Proxy(Date, {
    construct: (target, values, newTarget) =>
      Reflect.construct(target, values.length === 0 ? [Date.now()] : values, newTarget),
  })
  return ms => {
    aheadMs = ms
  }
}
