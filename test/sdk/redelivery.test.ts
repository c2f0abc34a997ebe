import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { ConsumerOptions } from '../../sdk/src/consumer-options.ts'
import type { MessageHandler } from '../../sdk/src/message.ts'
import { bodies, recorder, setUp, upTo } from './consumer-setup.ts'

type World = ReturnType<typeof setUp>
type Made = ReturnType<World['consumer']>

const place = { instanceId: 'pod-0' }

/** Ways in which a queue goes from one consumer to the next. */
const ways: { what: string; options?: Partial<ConsumerOptions>; go(world: World, first: Made): unknown }[] = [
  { what: 'stops', go: (_, first) => first.stop() },
  { what: 'stops and keeps its place', options: place, go: (_, first) => first.stop() },
  { what: 'leaves its place', options: place, go: (_, first) => first.stop({ leave: true }) },
  {
    what: 'is killed and given up',
    go({ groups }, first) {
      first.network.isCut = true
      groups.expire(1)
    },
  },
  {
    what: 'is killed and replaced',
    options: place,
    go(_, first) {
      first.network.isCut = true
    },
  },
  { what: 'is replaced', options: place, go: () => undefined },
  { what: 'has to give the queue up', go: () => undefined },
]

suite('what is in hand when a consumer goes', () => {
  for (const { what, options, go } of ways) {
    test(`is handed to the next owner, from the first message that is not done, if it ${what}`, async () => {
      const world = setUp({ queues: 2, settings: { threadSize: 3, consumerBatchSize: 2 } })
      const { clock, consumer, log, groups, committed } = world
      const done: number[] = []
      // Calls of 1-2 and 5-6 end; those of 3-4, 7-8 and 9-10 take the three slots; 11 to 40 are buffered.
      const handler: MessageHandler = async (messages, { signal }) => {
        const offset = messages[0]?.offset ?? 0
        if (offset !== 1 && offset !== 5) return clock.sleep(3_600_000, signal)
        done.push(offset)
      }
      const first = consumer(handler, { ...options, stopTimeoutMs: 1_000, revokeTimeoutMs: 1_000 })
      await first.start()
      await clock.advance(1_000)
      log.put(2, bodies(40))
      await clock.advance(1_000)
      const [status] = first.status().queues.filter(({ queueId }) => queueId === 2)
      assert.deepEqual([done, status?.running, status?.buffered], [[1, 5], 3, 30])
      const going = go(world, first)
      await clock.advance(2_000)
      await going

      const { seen, handler: note } = recorder()
      const next = consumer(note, options)
      await next.start()
      await clock.advance(30_000)
      assert.deepEqual(seen, upTo(2, 40, 3))
      assert.equal(
        groups.history.findLast(step => step.startsWith('give 2 ')),
        `give 2 to 2 at 2`,
      )
      assert.deepEqual(committed(), [0, 40])
      first.network.isCut = false
      const stops = Promise.all([first.stop(), next.stop()])
      await clock.advance(30_000)
      await stops
      assert.equal(clock.sleeping, 0)
    })
  }
})
