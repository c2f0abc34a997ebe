import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { createClient } from 'pmq-sdk'
import type { GroupView } from '../../core/protocol/admin.ts'
import { admin } from '../../demo/admin.ts'
import { endProcess, type HostProcess, startHostProcess, startProcess } from '../../demo/processes.ts'
import type { PoisonedPlan, PoisonedReport } from './programs/poisoned.ts'
import { until } from './until.ts'

const retryCount = 1
/** Far more than it may be; it does not end by itself where messages are handed out for ever. */
const mostProcesses = 15

suite('a message that ends the process of its consumer, which is started again each time', () => {
  let folder: string
  let host: HostProcess

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pmq-poison-'))
    host = await startHostProcess(join(folder, 'data'), 30)
  })
  after(async () => {
    await endProcess(host.child, 'SIGKILL')
    await rm(folder, { recursive: true })
  })

  for (const how of ['exit', 'SIGKILL'] as const) {
    test(`ends two at most for each time that it may be handled, and is a dead letter, and all others are handled: ${how}`, async () => {
      const [topicName, groupName] = [`orders-${how}`, `billing-${how}`]
      await admin(host.url, 'POST', '/topics', { name: topicName, queues: 3 })
      await admin(host.url, 'POST', '/groups', { name: groupName })
      const settings = { threadSize: 4, consumerBatchSize: 5, retryCount, retryDelaySeconds: 0 }
      await admin(host.url, 'PUT', `/groups/${groupName}/subscriptions/${topicName}`, settings)
      const bodies = Array.from({ length: 200 }, (_, n) => `message ${n}`)
      const poison = 'message 12'
      const client = createClient({ url: host.url })
      await client.publish(
        topicName,
        bodies.map(body => ({ body })),
      )
      await client.close()

      const started: { body: string; retryCount: number }[] = []
      const stored = { offsets: 0, dead: 0 }
      let suspicions = 0
      const lags = async () => {
        const { queues } = (await admin(host.url, 'GET', `/groups/${groupName}`)) as GroupView
        return queues.reduce((sum, { lag }) => sum + lag, 0)
      }
      let deaths = 0
      for (let isDrained = false; !isDrained; ) {
        assert.ok(deaths < mostProcesses, `${deaths} processes have ended`)
        const plan: PoisonedPlan = { url: host.url, groupName, topicName, poison, how }
        const child = startProcess(new URL('./programs/poisoned.ts', import.meta.url).href, [JSON.stringify(plan)])
        child.on('message', (report: PoisonedReport) => {
          if ('started' in report) started.push(...report.started)
          else if ('stored' in report) {
            stored.offsets += report.stored.offsets
            stored.dead += report.stored.dead
          } else if (report.careful.isSuspected) suspicions++
        })
        const closed = once(child, 'close')
        const hasEnded = () => child.exitCode !== null || child.signalCode !== null
        await until('it has ended, or everything is done', async () => hasEnded() || (await lags()) === 0)
        isDrained = !hasEnded()
        if (isDrained) child.kill('SIGTERM')
        else deaths++
        await closed
      }

      assert.deepEqual(new Set(started.map(({ body }) => body)), new Set(bodies))
      const counts = started.filter(({ body }) => body === poison).map(message => message.retryCount)
      assert.equal(counts.length, deaths)
      // In the fail topic it may be on trial from the beginning: that queue has lost its owners as well.
      assert.ok(['0,0,1', '0,0,1,1'].includes(counts.join()), counts.join())
      assert.deepEqual(
        started.filter(message => message.retryCount > 0 && message.body !== poison),
        [],
        'no other one has failed',
      )
      assert.deepEqual(stored, { offsets: 2, dead: 1 })
      assert.equal(suspicions, 2)
      const { queues } = (await admin(host.url, 'GET', `/groups/${groupName}`)) as GroupView
      assert.ok(queues.every(queue => queue.suspectOffset === undefined))
    })
  }
})
