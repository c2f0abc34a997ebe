import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Store } from '../../core/store.ts'
import { openSqliteStore } from '../../store/sqlite/open.ts'
import { openTestStore } from '../support/dynamo-store.ts'
import { dynoxide, type RunningEngine } from '../support/engines.ts'
import { createRunningClock } from '../support/manual-clock.ts'
import { bodies, done, pushOf, serveTarget, setUp } from './push-setup.ts'

const engine = dynoxide()
let running: RunningEngine | undefined
before(async () => {
  if (!engine.skip) running = await engine.start()
})
after(() => running?.stop())

const stores: [name: string, skip: string | undefined, open: () => Promise<Store>][] = [
  ['sqlite', undefined, async () => openSqliteStore(':memory:')],
  [
    'dynamo',
    engine.skip,
    async () => (await openTestStore(running ?? assert.fail(), { clock: createRunningClock() })).store,
  ],
]

for (const [name, skip, openStore] of stores) {
  suite(`over ${name}`, { skip: skip ?? false }, () => {
    test('two runs at once share the queues of a group, and each message is handed on once, in order', async t => {
      const scene = await setUp({ queues: 6, store: await openStore(), settings: { consumerBatchSize: 3 } })
      t.after(() => scene.service.close())
      for (const queueId of scene.queueIds) await scene.publish(bodies(30), queueId)
      const targets = await Promise.all([serveTarget(() => done), serveTarget(() => done)])
      const { run } = pushOf(scene.service)
      const reports = await Promise.all(targets.map(({ url }) => run(url)))
      assert.ok(reports.every(({ failed, isDrained }) => failed === 0 && isDrained))
      assert.equal(
        reports.reduce((sum, { handled }) => sum + handled, 0),
        180,
      )
      const seen = targets.flatMap(target => target.seen())
      for (const queueId of scene.queueIds) {
        const offsets = seen.flatMap(place => (place.startsWith(`${queueId}:`) ? Number(place.split(':')[1]) : []))
        assert.deepEqual(
          offsets,
          Array.from({ length: 30 }, (_, index) => index + 1),
        )
      }
      assert.deepEqual([await scene.lag(), await scene.claimants()], [0, []])
    })

    test('failures, retries and a target that is away go by the same rules', async t => {
      const settings = { consumerBatchSize: 5, retryCount: 2 }
      const scene = await setUp({ queues: 2, store: await openStore(), settings })
      t.after(() => scene.service.close())
      for (const queueId of scene.queueIds) await scene.publish(bodies(5), queueId)
      let calls = 0
      const target = await serveTarget(({ msgs }) => {
        if (++calls % 3 === 1) return 503
        return { suc: true, failIds: msgs.filter(({ body }) => body === 'm3').map(({ id }) => id) }
      })
      const { run } = pushOf(scene.service)
      for (let time = 0; time < 12; time++) {
        await run(target.url)
        scene.later()
      }
      assert.deepEqual([await scene.committed(), await scene.lag()], [[5, 5], 0])
      assert.deepEqual(
        await scene.failures(),
        [1, 1, 2, 2, 3, 3].map(count => ['m3', count]),
      )
    })
  })
}
