import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { EndpointName } from '../../core/protocol/endpoints.ts'
import type { Message } from '../../sdk/src/message.ts'
import { bodies, passTime, setUp } from './lambda-setup.ts'

const bad = 'm5'
const retryCount = 2
/** What the fail topic has of the bad one in the end: each time that it failed, the last one as a dead letter. */
const allFailures = [1, 2, 3]
/** How often each request is one to die at; all of them are made in an invocation that lives. */
const requests: Partial<Record<EndpointName, number>> = {
  claimQueues: 2,
  pullData: 5,
  commitOffset: 3,
  publishAndUpdateResultFailMsg: 3,
}
const limitMs = 20_000

suite('an invocation that is killed', () => {
  for (const [name, times] of Object.entries(requests)) {
    for (let nth = 1; nth <= times; nth++) {
      for (const when of ['there', 'back'] as const) {
        test(`while its ${name} ${nth} is on its way ${when} loses no message and no failure, and repeats nothing that it had committed`, async () => {
          const settings = { threadSize: 2, consumerBatchSize: 3, retryCount, retryDelaySeconds: 1 }
          const { service, clock, lambda, publish, committed } = await setUp({ queues: 1, settings })
          await publish(bodies(10))
          const failures = async () => {
            const { queues } = await service.call('getTopicView', undefined, { topicName: 'billing_orders_fail' })
            const found: number[] = []
            for (const { queueId } of queues) {
              const request = { queueId, offsetStart: 0, topicName: 'billing_orders_fail', maxBytes: 100_000 }
              const { batches = [] } = await service.call('pullData', request)
              found.push(...batches.flatMap(({ msgs }) => msgs.map(message => message.retryCount ?? 0)))
            }
            return found
          }
          const failing =
            (seen: Message[], isDead = () => false) =>
            (messages: readonly Message[]) => {
              if (isDead()) return new Promise<void>(() => {})
              seen.push(...messages)
              return messages.filter(({ body }) => body === bad).map(({ offset }) => offset)
            }

          const before: Message[] = []
          const { network, start } = lambda({ topics: { orders: failing(before, () => network.isCut) } })
          let made = 0
          network.fault = async call => {
            if (call.name !== name || ++made !== nth) return undefined
            // What else it asks goes on until then.
            await clock.sleep(2_000)
            network.isCut = true
            return when === 'there' ? 'unreachable' : undefined
          }
          const killed = start(limitMs).catch(() => undefined)
          await passTime(service, limitMs + 1_000)
          assert.ok(network.isCut)
          const [offset = 0] = await committed()
          assert.ok(offset < 5 || (await failures()).length > 0, 'never in neither')

          const after: Message[] = []
          const { invoke } = lambda({ topics: { orders: failing(after) } })
          for (let invocation = 0; invocation < 4; invocation++) {
            await invoke()
            await passTime(service, 2_000)
          }
          const firstRuns = [...before, ...after].filter(message => message.retryCount === 0)
          assert.deepEqual(new Set(firstRuns.map(({ body }) => body)), new Set(bodies(10)))
          assert.ok(after.every(message => message.retryCount > 0 || message.offset > offset))
          assert.deepEqual([...new Set(await failures())].toSorted(), allFailures)
          const { queues } = await service.call('getGroup', undefined, { groupName: 'billing' })
          assert.ok(queues.every(({ lag }) => lag === 0))
          await service.pass(killed)
          await service.close()
        })
      }
    }
  }
})
