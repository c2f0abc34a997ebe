import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Child } from './child.ts'
import { commitsOf, committedBy, handledBy, queuesOf, uncommittedOf } from './reading.ts'
import { openScene, type Scene } from './scene.ts'
import { until } from './until.ts'

test('a consumer suspended beyond its session is fenced when it wakes, and takes part again', () =>
  // What it commits then is ahead of what its heir has committed by that time, which is nothing.
  becomesZombie(60_000, async (_, zombie) => {
    zombie.signal('SIGSTOP')
    return () => zombie.signal('SIGCONT')
  }))

test('a consumer whose event loop is blocked beyond its session is fenced, and takes part again', () =>
  // What it commits then is behind what its heir has committed, most likely.
  becomesZombie(100, async (scene, zombie) => {
    const { blocks } = zombie
    const file = join(scene.folder, `go-on-${blocks}`)
    zombie.send({ blockUntil: file })
    await until('it is blocked', () => zombie.blocks > blocks)
    return () => writeFile(file, '')
  }))

/** Stops a consumer in the middle of its work; resolves with what lets it go on. */
type Stop = (scene: Scene, consumer: Child) => Promise<() => void | Promise<void>>

const maxRounds = 4

async function becomesZombie(heirCommitsEveryMs: number, stop: Stop): Promise<void> {
  await using scene = await openScene({ queues: 4, sessionTimeoutSeconds: 3 })
  const zombie = scene.consumer('zombie')
  const heir = scene.consumer('heir', { options: { asyncCommitIntervalMs: heirCommitsEveryMs } })
  await scene.ownedBy(zombie, heir)
  scene.publisher('publisher')
  // It wakes with a commit to make, and makes it before it can hear that it was given up; unless it was stopped at the
  // very moment when one was under way.
  for (let round = 1; commitsOf(zombie, 'fenced').length === 0 && round <= maxRounds; round++) {
    await until('it has something to commit', () => committedBy(zombie).size > 0 && uncommittedOf(zombie).length > 0)
    const goOn = await stop(scene, zombie)
    await isReplaced(scene, zombie, heir)
    const told = zombie.told.length
    await goOn()
    for (const type of ['expired', 'registered', 'assigned']) {
      await until(`it hears "${type}"`, () => zombie.told.slice(told).some(event => event.type === type))
    }
    await scene.ownedBy(zombie, heir)
    const handled = handledBy(zombie).length
    await until('it works again', () => handledBy(zombie).length > handled)
  }
  await scene.finish()
  assert.notEqual(commitsOf(zombie, 'fenced').length, 0)
}

/** Until another consumer works on each of its queues. */
async function isReplaced(scene: Scene, consumer: Child, heir: Child): Promise<void> {
  const before = heir.events('handle-end').length
  await scene.ownedBy(heir)
  await until('its queues are worked on', () => {
    const since = heir.events('handle-end').slice(before)
    return [...queuesOf(consumer, scene)].every(queueId => since.some(end => end.queueId === queueId))
  })
}
