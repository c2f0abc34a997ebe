import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** A program that is to be told to end, once it has printed enough. */
export type Stop = { signal: NodeJS.Signals; isDue(lines: readonly string[]): boolean }

/** Runs a program against a host; returns the lines that it printed. It must end well and complain of nothing. */
export async function runExample(path: string, url: string, stop?: Stop): Promise<string[]> {
  const child = spawn(process.execPath, [path], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, PMQ_URL: url },
  })
  const ended = once(child, 'close')
  let output = ''
  let complaints = ''
  let isTold = false
  const lines = () => output.split('\n').filter(line => line !== '')
  child.stderr.setEncoding('utf8').on('data', text => {
    complaints += text
  })
  child.stdout.setEncoding('utf8').on('data', text => {
    output += text
    if (isTold || !stop?.isDue(lines())) return
    isTold = true
    child.kill(stop.signal)
  })
  const [code, killedBy] = await ended
  if (code !== 0 || complaints !== '')
    throw new Error(`${path} ended with ${code ?? killedBy}\n${output}\n${complaints}`)
  return lines()
}

/** Of the lines that are to come, in their order, `…` standing for anything: the first that did not. */
export function firstMissing(expected: readonly string[], lines: readonly string[]): string | undefined {
  let position = 0
  return expected.find(line => {
    const pattern = new RegExp(`^${line.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '.*')}$`)
    const found = lines.findIndex((printed, index) => index >= position && pattern.test(printed))
    if (found >= 0) position = found + 1
    return found < 0
  })
}
