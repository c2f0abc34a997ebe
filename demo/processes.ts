import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/** Starts a program, one of this folder or by its URL, as a process of its own, which tells its parent things by messages. */
export function startProcess(file: string, args: string[]): ChildProcess {
  return fork(fileURLToPath(new URL(file, import.meta.url)), args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
}

/** Ends a process and waits until it is gone. Without a signal it is only waited for. */
export async function endProcess(child: ChildProcess, signal?: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  if (signal) child.kill(signal)
  await gone
}

/** Starts the host on its folder, at a free port unless told otherwise, and returns its URL once it listens. */
export async function startHostProcess(
  folder: string,
  sessionTimeoutSeconds: number,
  port = 0,
  more: string[] = [],
): Promise<HostProcess> {
  const file = fileURLToPath(new URL('../bin/pmq.ts', import.meta.url))
  const args = ['start', '--port', `${port}`, '--dir', folder, '--session-timeout', `${sessionTimeoutSeconds}`, ...more]
  const child = fork(file, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  const url = await readUrl(child)
  return { child, url }
}

export type HostProcess = { child: ChildProcess; url: string }

export type Service = { url: string; stop(): Promise<void> }

/**
 * The service that a demo runs against: the one at `--url <url>`, wherever that is, or a host of its own on a folder that
 * goes with it.
 */
export async function openService(sessionTimeoutSeconds: number): Promise<Service> {
  const { url } = parseArgs({ options: { url: { type: 'string' } }, strict: false }).values
  if (typeof url === 'string') return { url, stop: async () => {} }
  const folder = await mkdtemp(join(tmpdir(), 'pmq-demo-'))
  const host = await startHostProcess(folder, sessionTimeoutSeconds)
  return {
    url: host.url,
    async stop() {
      await endProcess(host.child, 'SIGTERM')
      await rm(folder, { recursive: true })
    },
  }
}

async function readUrl(child: ChildProcess): Promise<string> {
  let text = ''
  for await (const chunk of child.stdout ?? []) {
    text += chunk
    const url = /http:\/\/[\d.]+:\d+/.exec(text)?.[0]
    // What it prints from here on is not read; it must not fill the pipe.
    if (url) {
      child.stdout?.resume()
      return url
    }
  }
  throw new Error(`the host ended before it listened: ${text}`)
}
