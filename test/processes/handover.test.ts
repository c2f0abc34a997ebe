import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HistoryEvent } from '../checker/history.ts'
import { runDemo } from '../support/run-demo.ts'
import type { Child } from './child.ts'
import { committedBy, findRepeats, placeOf, uncommittedOf } from './reading.ts'
import { openScene } from './scene.ts'
import { until } from './until.ts'

test('a consumer that is told to stop under load has its queues gone on with right behind what it handled', async () => {
  await using scene = await openScene({ queues: 8, sessionTimeoutSeconds: 30 })
  const leavers = [scene.consumer('first'), scene.consumer('second')]
  const last = scene.consumer('last')
  await scene.ownedBy(...leavers, last)
  scene.publisher('publisher')
  for (const [index, leaver] of leavers.entries()) {
    await until('it is in the middle of it', () => committedBy(leaver).size > 0 && uncommittedOf(leaver).length > 0)
    await leaver.end('SIGTERM')
    await scene.ownedBy(...leavers.slice(index + 1), last)
  }
  const joiner = scene.consumer('joiner')
  await scene.ownedBy(last, joiner)
  await until('the joiner works', () => committedBy(joiner).size > 0)
  const events = await scene.finish()

  assert.deepEqual(findRepeats(events), [])
  for (const leaver of leavers) assertGoneOnWith(events, leaver)
})

/** In each queue that it had in the end, what is handed out next is the message behind the last one that it handled. */
function assertGoneOnWith(events: readonly HistoryEvent[], leaver: Child) {
  const lasts = new Map<number, number>()
  for (const { queueId, offset } of leaver.events('handle-end')) {
    lasts.set(queueId, Math.max(offset, lasts.get(queueId) ?? 0))
  }
  assert.ok(lasts.size > 0)
  for (const [queueId, offset] of lasts) {
    const end = events.findLastIndex(event => event.client === leaver.name)
    const next = events.slice(end).find(event => event.type === 'handle-start' && event.queueId === queueId)
    assert.ok(next?.type === 'handle-start')
    assert.equal(placeOf(next), placeOf({ queueId, offset: offset + 1 }))
  }
}

test('a rolling restart of a whole group under load loses nothing and repeats nothing', async () => {
  // Not the exit code, which is also about pauses; how long these are depends on the machine.
  const { published, handled, lost, duplicates } = await runDemo('roll')
  assert.ok(published > 1_000)
  assert.deepEqual({ handled, lost, duplicates }, { handled: published, lost: 0, duplicates: 0 })
})
