import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import type { TopicView } from '../../core/protocol/admin.ts'
import { admin, setUp } from '../../demo/admin.ts'
import { endProcess, type HostProcess, startHostProcess, startProcess } from '../../demo/processes.ts'
import type { LeaverPlan } from './programs/leaver.ts'

suite('a program that publishes a thousand messages, awaits none of them, closes its client and exits', () => {
  const messages = 1_000
  let folder: string
  let host: HostProcess

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pmq-leaver-'))
    host = await startHostProcess(join(folder, 'data'), 30)
    await setUp(host.url, 'orders', 4, 'billing')
  })
  after(async () => {
    await endProcess(host.child, 'SIGKILL')
    await rm(folder, { recursive: true })
  })

  async function run(plan: Partial<LeaverPlan>) {
    const file = new URL('./programs/leaver.ts', import.meta.url).href
    const child = startProcess(file, [JSON.stringify({ url: host.url, topicName: 'orders', messages, ...plan })])
    const [told] = await once(child, 'message')
    await endProcess(child)
    return told
  }

  test('leaves all of them behind in the service', async () => {
    assert.deepEqual(await run({}), { stored: messages, failed: 0 })
    const { queues } = (await admin(host.url, 'GET', '/topics/orders')) as TopicView
    assert.equal(
      queues.reduce((sum, { nextOffset }) => sum + nextOffset - 1, 0),
      messages,
    )
  })

  test('has been told of each that it is not stored, where there is no service', async () => {
    assert.deepEqual(await run({ url: 'http://127.0.0.1:1', timeoutMs: 100 }), { stored: 0, failed: messages })
  })
})
