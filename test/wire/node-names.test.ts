import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { PublishError } from '../../sdk/src/errors.ts'
import { live } from './java-client.ts'
import { openNodeClient } from './node-client.ts'
import { createGroup, createTopic } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(() => {
  service = openService()
})
afterEach(() => service.close())

describe('the SDK takes a name that every object has for a name like any other', () => {
  for (const name of ['constructor', 'toString', '__proto__']) {
    test(`consumes with a group called ${name} from a topic of that name`, async () => {
      await createTopic(service, name)
      await createGroup(service, name, [name])
      const client = openNodeClient(service)
      const seen: string[] = []
      const topics = Object.fromEntries([
        [name, (messages: readonly { body: string }[]) => void seen.push(...messages.map(m => m.body))],
      ])
      const consumer = client.consumer({ groupName: name, topics })
      await service.pass(consumer.start())
      await live(service, 2_000)
      await service.pass(client.publish(name, { body: 'a' }))
      await live(service, 6_000)
      assert.deepEqual(seen, ['a'])
      await service.pass(client.close())
    })

    test(`is refused a publish to a missing topic called ${name} at once`, async () => {
      const client = openNodeClient(service)
      const beganAtMs = service.clock.now()
      const refused = await service.pass(client.publish(name, { body: 'a' }).catch((error: unknown) => error))
      assert.ok(refused instanceof PublishError, String(refused))
      assert.deepEqual([refused.code, refused.outcome], ['refused', 'not_stored'])
      assert.ok(service.clock.now() - beganAtMs < 1_000)
      await service.pass(client.close())
    })
  }
})
