import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { dynoxide } from '../support/engines.ts'

const engine = dynoxide()

const program = `
  import { dynoxide } from ${JSON.stringify(new URL('../support/engines.ts', import.meta.url).href)}
  const { endpoint } = await dynoxide().start()
  process.stdout.write(endpoint)
`

async function listens(port: number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' })
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

describe('an engine on this machine', { skip: engine.skip ?? false }, () => {
  test('ends with the process that started it, also when that is killed', { timeout: 20_000 }, async () => {
    const parent = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [endpoint] = await once(parent.stdout, 'data')
    const port = Number(new URL(String(endpoint)).port)
    assert.ok(await listens(port))

    parent.kill('SIGKILL')
    await once(parent, 'close')
    while (await listens(port)) await sleep(5)
  })

  test('is gone once it is stopped', async () => {
    const running = await engine.start()
    await running.stop()
    assert.equal(await listens(Number(new URL(running.endpoint).port)), false)
  })
})
