import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commitsOf, committedBy, findRepeats, queuesOf, uncommittedOf } from './reading.ts'
import { openScene } from './scene.ts'
import { until } from './until.ts'

test('a consumer killed under load loses nothing, and only what it had not committed is handed out again', async () => {
  await using scene = await openScene({ queues: 8, sessionTimeoutSeconds: 3 })
  const victim = scene.consumer('victim')
  const others = [scene.consumer('second'), scene.consumer('third')]
  await scene.ownedBy(victim, ...others)
  scene.publisher('publisher')
  await until('there is something to lose', () => committedBy(victim).size > 0 && uncommittedOf(victim).length > 0)
  await victim.end('SIGKILL')
  const committed = committedBy(victim)

  await scene.ownedBy(...others)
  const isWorkedOn = (queueId: number) =>
    others.some(other => (committedBy(other).get(queueId) ?? 0) > (committed.get(queueId) ?? 0))
  await until('its queues are worked on', () => [...queuesOf(victim, scene)].every(isWorkedOn))
  const events = await scene.finish()

  const repeats = findRepeats(events).filter(({ first }) => first.client === victim.name)
  assert.deepEqual(
    repeats.filter(({ wasCommitted }) => wasCommitted),
    [],
  )
})

test('a message that takes long is handed out again after a kill, though later ones of its queue were done', async () => {
  await using scene = await openScene({
    queues: 2,
    sessionTimeoutSeconds: 3,
    settings: { threadSize: 4, consumerBatchSize: 1 },
  })
  const victim = scene.consumer('victim', { hangsAtFirst: true, options: { syncCommit: true } })
  await scene.ownedBy(victim)
  scene.publisher('publisher')
  const hanging = await until('the first message is worked on', () => victim.events('handle-start')[0])
  const { queueId } = hanging
  // Whatever it would commit for the queue of the hanging message, it had the occasion: its other queue was committed.
  const later = await until('later messages are done', () => {
    const done = victim.events('handle-end').filter(end => end.queueId === queueId)
    return done[19]
  })
  await until('another queue was committed meanwhile', () =>
    commitsOf(victim, 'advanced').some(commit => commit.queueId !== queueId && commit.seq > later.seq),
  )
  await victim.end('SIGKILL')
  const heir = scene.consumer('heir')
  await scene.ownedBy(heir)
  await scene.finish()

  assert.deepEqual(
    victim.events('commit-invoke').filter(commit => commit.queueId === queueId),
    [],
  )
  const first = heir.events('handle-start').find(start => start.queueId === queueId)
  assert.deepEqual([first?.offset, first?.value], [1, hanging.value])
})
