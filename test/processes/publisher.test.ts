import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Child } from './child.ts'
import { now } from './now.ts'
import { openScene } from './scene.ts'
import { until } from './until.ts'

const requestTimeoutMs = 1_000

test('a publisher suspended in the middle of publishes, beyond its time-outs, stores nothing twice and loses nothing', async () => {
  await using scene = await openScene({ queues: 4, sessionTimeoutSeconds: 30 })
  const consumers = [scene.consumer('first'), scene.consumer('second')]
  await scene.ownedBy(...consumers)
  // One of its producers asks again what became of a request, the other one has given up by then.
  const producers = [{ publishTimeoutMs: 60_000 }, { publishTimeoutMs: requestTimeoutMs }]
  const publisher = scene.publisher('publisher', { requestTimeoutMs, producers })

  await until('it publishes', () => answersSince(publisher, 0) >= 200)
  publisher.signal('SIGSTOP')
  await timeoutsAreOver()
  // It finds answers that are there, and time-outs that are over.
  const wokenAt = now()
  publisher.signal('SIGCONT')
  await until('it goes on', () => answersSince(publisher, wokenAt) >= 200)

  // Now the answers are not there when it wakes, so that it has to ask again, and both attempts meet.
  scene.signalHost('SIGSTOP')
  await until('requests are under way', () => isWaiting(publisher))
  publisher.signal('SIGSTOP')
  await timeoutsAreOver()
  const wokenAgainAt = now()
  publisher.signal('SIGCONT')
  await until('it asks again', () =>
    publisher.events('publish-invoke').some(({ attempt, at }) => attempt > 1 && at > wokenAgainAt),
  )
  const answeredAt = now()
  scene.signalHost('SIGCONT')
  await until('it goes on', () => answersSince(publisher, answeredAt) >= 200)
  await scene.finish()

  // Each value has a place of its own.
  const values = consumers.flatMap(child => child.events('handle-end')).map(({ value }) => value)
  assert.equal(await scene.stored(), new Set(values).size)
})

/** Nothing but the clock can tell what a process that is stopped would find to be over. */
async function timeoutsAreOver() {
  const startedAt = now()
  await until('its time-outs are over', () => now() > startedAt + requestTimeoutMs)
}

const answersSince = (child: Child, since: number) => child.events('publish-ok').filter(({ at }) => at > since).length

/** Requests of both producers have no answer yet. */
function isWaiting(child: Child): boolean {
  const ended = new Set([...child.events('publish-ok'), ...child.events('publish-info')].map(({ op }) => op))
  return child.events('publish-invoke').filter(({ seq }) => !ended.has(seq)).length >= 4
}
