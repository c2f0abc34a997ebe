import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { endProcess, startHostProcess } from '../demo/processes.ts'

const example = fileURLToPath(new URL('../examples/first.ts', import.meta.url))

test('the first program of the README is the example, to the letter', async () => {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8')
  assert.equal(/```ts\n(.*?)```/s.exec(readme)?.[1], await readFile(example, 'utf8'))
})

test('the example publishes, consumes, and ends at Ctrl-C', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'pmq-example-'))
  const host = await startHostProcess(folder, 30)
  const child = spawn(process.execPath, [example], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, PMQ_URL: host.url },
  })
  const exited = once(child, 'exit')
  let output = ''
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    output += chunk
    if (['ann', 'bob', 'eve'].every(name => output.includes(`${name}: an order of ${name}`))) child.kill('SIGINT')
  }
  assert.deepEqual(await exited, [0, null])
  await endProcess(host.child, 'SIGTERM')
  await rm(folder, { recursive: true })
})

test('the demo loses nothing when a consumer is killed and another joins', async () => {
  const demo = fileURLToPath(new URL('../demo/run.ts', import.meta.url))
  const child = spawn(process.execPath, [demo, '--json'], { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  for await (const chunk of child.stdout.setEncoding('utf8')) output += chunk
  const { published, handled, lost } = JSON.parse(output)
  assert.ok(published > 1_000)
  assert.deepEqual({ handled, lost }, { handled: published, lost: 0 })
})
