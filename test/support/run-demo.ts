import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export type DemoResult = { published: number; handled: number; lost: number; duplicates: number }

/** Runs a program of the demo to its end, and answers with what it has found. */
export async function runDemo(name: 'run' | 'roll', args: string[] = []): Promise<DemoResult> {
  const demo = fileURLToPath(new URL(`../../demo/${name}.ts`, import.meta.url))
  const stdio: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit']
  // A group of its own: should it fail, it leaves its host and consumers behind.
  const child = spawn(process.execPath, [demo, '--json', ...args], { stdio, detached: true })
  const endGroup = () => endProcessGroup(child)
  process.once('exit', endGroup)
  const closed = once(child, 'close')
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  await once(child, 'exit')
  process.off('exit', endGroup)
  endGroup()
  await closed
  return JSON.parse(output)
}

function endProcessGroup({ pid }: ChildProcess) {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // There is nobody left in it.
  }
}
