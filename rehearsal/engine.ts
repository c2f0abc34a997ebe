import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from './free-port.ts'

export type RunningEngine = {
  endpoint: string
  /** Requests that it can take at once without mixing them up. */
  maxConnections: number
  stop(): Promise<void>
}

/** A DynamoDB engine that can be run; `skip` says why it cannot. */
export type Engine = { name: string; skip?: string; start(): Promise<RunningEngine> }

/** A static binary over SQLite, in memory. */
export function dynoxide(): Engine {
  const binary = fileURLToPath(new URL('../node_modules/@dynoxide/linux-x64/dynoxide', import.meta.url))
  return {
    name: 'dynoxide',
    ...(!existsSync(binary) && { skip: 'the optional dependency @dynoxide/linux-x64 is not installed here' }),
    start: () => startEngine(binary, port => ['serve', '--host', '127.0.0.1', '--port', String(port)]),
  }
}

/** Starting an interpreted engine on a busy machine takes seconds. */
const startTimeoutMs = 60_000
const attempts = 3

/** Starts a server that speaks DynamoDB as a process of its own, and waits until it answers. */
export async function startEngine(
  command: string,
  args: (port: number) => string[],
  maxConnections = 100,
): Promise<RunningEngine> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort()
    const engine = await spawnLeashed(command, args(port))
    try {
      await engine.ready(port)
      return { endpoint: `http://127.0.0.1:${port}`, maxConnections, stop: engine.stop }
    } catch (error) {
      await engine.stop()
      // Somebody else may have taken the port between our asking for it and the engine's.
      if (attempt === attempts) throw error
    }
  }
}

/**
 * Runs the engine under a shell that ends it as soon as its own standard input closes. That is how it is stopped, and it
 * also happens when this process is killed, so that no engine outlives its test. (The engine's own input is not the
 * shell's: background commands get none.)
 */
const leash = `
exec 3<&0
"$@" 3<&- &
engine=$!
(cat <&3 >/dev/null; kill $engine 2>/dev/null) &
wait $engine
`

async function spawnLeashed(command: string, args: string[]) {
  const shell = spawn('sh', ['-c', leash, 'sh', command, ...args], { stdio: ['pipe', 'ignore', 'pipe'] })
  let lastWords = ''
  shell.stderr.on('data', chunk => {
    lastWords = (lastWords + chunk).slice(-2000)
  })
  const closed = once(shell, 'close')
  const end = () => shell.stdin.destroy()
  process.once('exit', end)
  await once(shell, 'spawn')

  return {
    async ready(port: number) {
      const deadline = Date.now() + startTimeoutMs
      while (!(await answers(port))) {
        const words = `${command}: ${lastWords || 'no message'}`
        if (hasEnded(shell)) throw new Error(`the engine ended before it answered on port ${port}. ${words}`)
        if (Date.now() > deadline) throw new Error(`the engine does not answer on port ${port}. ${words}`)
        await sleep(5)
      }
      // Who answers must be ours: an engine that finds its port taken ends.
      if (hasEnded(shell)) throw new Error(`something else answers on port ${port}. ${command}: ${lastWords}`)
    },
    async stop() {
      process.removeListener('exit', end)
      end()
      await closed
    },
  }
}

const hasEnded = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null

/** True once a request is answered: an engine may listen long before it has loaded what it needs for its first one. */
async function answers(port: number): Promise<boolean> {
  const headers = {
    'content-type': 'application/x-amz-json-1.0',
    'x-amz-target': 'DynamoDB_20120810.ListTables',
    authorization: 'AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request',
  }
  const asked = request({ port, host: '127.0.0.1', method: 'POST', headers, agent: false, timeout: startTimeoutMs })
  asked.on('timeout', () => asked.destroy(new Error('no answer')))
  try {
    asked.end('{}')
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    for await (const _ of answer) {
    }
    return true
  } catch {
    return false
  }
}
