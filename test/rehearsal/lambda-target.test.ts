import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { dynoxide } from '../../rehearsal/engine.ts'
import { arnOf } from '../../rehearsal/template/account.ts'
import { rehearseService, synthesizeOnce } from './real-stack.ts'

const functionName = arnOf('lambda', 'function:consumer')

/** A function of somebody else's in the account, which the stack may invoke, with the SDK's consumer in it. */
suite('a Lambda function that is a target of a group', { skip: dynoxide().skip ?? false }, () => {
  let synthesized: ReturnType<typeof synthesizeOnce>
  let folder: string
  before(async () => {
    synthesized = synthesizeOnce({ lambdaConsumers: [functionName] })
    folder = await mkdtemp(join(tmpdir(), 'pmq-consumer-'))
  })
  after(async () => {
    synthesized.remove()
    await rm(folder, { recursive: true })
  })

  test('is invoked when a message is published, handles it, and is told of nothing else', async () => {
    const [url, handled] = [join(folder, 'url'), join(folder, 'handled')]
    await writeFile(join(folder, 'index.mjs'), consumerOf(url, handled))
    const neighbours = [{ name: 'consumer', folder, handler: 'index.handler' }]
    await using service = await rehearseService(synthesized.folder, { neighbours })
    await writeFile(url, service.url)
    await service.call('createTopic', { name: 'orders', queues: 2 })
    await service.call('createGroup', { name: 'billing', mode: 'claimed' })
    await service.call('subscribe', {}, { groupName: 'billing', topicName: 'orders' })
    const target = { groupName: 'billing', targetName: 'consumer' }
    await service.call('putTarget', { kind: 'lambda', functionName }, target)
    for (const body of ['one', 'two', 'three']) {
      await service.call('publish', { topicName: 'orders', msgs: [{ body }] })
      service.advance(1_500)
      await service.settled()
    }
    assert.deepEqual((await readFile(handled, 'utf8')).trim().split('\n').sort(), ['one', 'three', 'two'])
    const { deliveries } = await service.call('listTargetDeliveries', {}, target)
    assert.ok(deliveries.length >= 3)
    assert.ok(
      deliveries.every(
        ({ outcome, what }: { outcome: string; what: string }) => outcome === 'succeeded' && what === 'hint',
      ),
    )
    const { denied, failed, notRehearsed } = service.report()
    // What the function itself may do is its owner's business.
    const ours = denied.filter(({ caller }) => caller !== 'consumer')
    assert.deepEqual({ ours, failed, notRehearsed }, { ours: [], failed: [], notRehearsed: [] })
  })
})

const consumerOf = (url: string, handled: string) => `
import { appendFileSync, readFileSync } from 'node:fs'
import { lambdaConsumer } from ${JSON.stringify(new URL('../../sdk/src/lambda/lambda-consumer.ts', import.meta.url).href)}

export const handler = lambdaConsumer({
  url: readFileSync(${JSON.stringify(url)}, 'utf8'),
  groupName: 'billing',
  topics: {
    orders(messages) {
      for (const { body } of messages) appendFileSync(${JSON.stringify(handled)}, body + '\\n')
    },
  },
})
`
