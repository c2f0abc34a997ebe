import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { MovableClock } from '../clock.ts'
import type { FunctionSpec } from './function-spec.ts'
import { lambdaLimits } from './limits.ts'
import type { FromInstance, FunctionError, ToInstance } from './messages.ts'

export type Outcome = { outcome: 'returned'; payload: string } | { outcome: 'failed'; error: FunctionError }

/** A process that has loaded the function and serves one request at a time. */
export type Instance = {
  /** Loads the function on its first request; must not be called while another one runs. */
  invoke(requestId: string, payload: string): Promise<Outcome>
  /** True once its process has ended: by a time-out, by itself, or by `end`. */
  readonly isGone: boolean
  end(): Promise<void>
}

export type InstanceOptions = {
  environment: Record<string, string>
  clock: MovableClock
  /** Hears each line of the function's log. */
  onLog(line: string): void
}

const bootstrap = fileURLToPath(new URL('bootstrap.ts', import.meta.url))

export function startInstance(spec: FunctionSpec, { environment, clock, onLog }: InstanceOptions): Instance {
  const child = fork(bootstrap, [spec.folder, spec.handler, String(clock.aheadMs)], {
    cwd: spec.folder,
    env: environment,
    execArgv: [`--max-old-space-size=${spec.memoryMb}`],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) createInterface({ input: stream }).on('line', onLog)
  }
  const closed = once(child, 'close')
  let isGone = false
  const ended = once(child, 'exit').then(([code, signal]) => {
    isGone = true
    return { ended: signal === null ? `exit status ${code}` : `signal: ${signal}` }
  })
  let isLoaded = false

  async function load(): Promise<FunctionError | undefined> {
    const message = await within(lambdaLimits.initTimeoutMs, nextMessage(child), ended)
    if ('type' in message && message.type === 'loaded') {
      isLoaded = true
      return undefined
    }
    await end()
    if ('type' in message && message.type === 'not loaded') return message.error
    return 'ended' in message
      ? { errorType: 'Runtime.ExitError', errorMessage: `Runtime exited with error: ${message.ended}` }
      : { errorType: 'Sandbox.Timedout', errorMessage: `Init took longer than ${seconds(lambdaLimits.initTimeoutMs)}` }
  }

  async function end(): Promise<void> {
    isGone = true
    child.kill('SIGKILL')
    await closed
  }

  return {
    get isGone() {
      return isGone
    },
    async invoke(requestId, payload) {
      const notLoaded = isLoaded ? undefined : await load()
      if (notLoaded) return { outcome: 'failed', error: notLoaded }
      const answer = nextMessage(child)
      const deadlineMs = clock.now() + spec.timeoutMs
      const request: ToInstance = { requestId, payload, deadlineMs, arn: spec.arn, aheadMs: clock.aheadMs }
      child.send(request, () => {})
      const message = await within(spec.timeoutMs, answer, ended)
      const failed = (errorType: string, errorMessage: string): Outcome => ({
        outcome: 'failed',
        error: { errorType, errorMessage: `RequestId: ${requestId} Error: ${errorMessage}` },
      })
      if ('ended' in message) return failed('Runtime.ExitError', `Runtime exited with error: ${message.ended}`)
      if (message.type === 'returned') return checkSize(message.payload)
      if (message.type === 'failed') return { outcome: 'failed', error: message.error }
      await end()
      return failed('Sandbox.Timedout', `Task timed out after ${seconds(spec.timeoutMs)}`)
    },
    end,
  }
}

function checkSize(payload: string): Outcome {
  const bytes = Buffer.byteLength(payload)
  if (bytes <= lambdaLimits.maxPayloadBytes) return { outcome: 'returned', payload }
  const errorMessage = `Response payload size (${bytes} bytes) exceeded maximum allowed payload size (${lambdaLimits.maxPayloadBytes} bytes).`
  return { outcome: 'failed', error: { errorType: 'Function.ResponseSizeTooLarge', errorMessage } }
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} seconds`

async function nextMessage(child: ChildProcess): Promise<FromInstance> {
  return new Promise(resolve => child.once('message', message => resolve(message as FromInstance)))
}

/** Whichever comes first. By the real clock: a function's time passes while it works, whatever time it is told to be. */
async function within<A, B>(ms: number, ...promises: [Promise<A>, Promise<B>]): Promise<A | B | { type: 'time out' }> {
  let timer: NodeJS.Timeout | undefined
  const timeOut = new Promise<{ type: 'time out' }>(resolve => {
    timer = setTimeout(() => resolve({ type: 'time out' }), ms)
  })
  try {
    return await Promise.race([...promises, timeOut])
  } finally {
    clearTimeout(timer)
  }
}
