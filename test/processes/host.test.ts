import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Child } from './child.ts'
import { handledBy } from './reading.ts'
import { openScene } from './scene.ts'
import { until } from './until.ts'

const kills = 10
/** What has to be acknowledged, and handled, by each host that is killed. */
const messagesPerHost = 100

test('consumers and a publisher that are there before the host begin when it comes, and survive that it is killed ten times', async () => {
  await using scene = await openScene({ queues: 4, sessionTimeoutSeconds: 3 })
  await scene.killHost()
  const consumers = [scene.consumer('first'), scene.consumer('second')]
  const publisher = scene.publisher('publisher')
  for (const child of [...consumers, publisher]) await until(`${child.name} asks in vain`, () => asksInVain(child))

  const acknowledged = () => publisher.events('publish-ok').length
  const handled = () => consumers.flatMap(handledBy).length
  await scene.startHost()
  for (let kill = 1; kill <= kills; kill++) {
    const [acknowledgedBefore, handledBefore] = [acknowledged(), handled()]
    await until('the host is used', () => {
      const least = Math.min(acknowledged() - acknowledgedBefore, handled() - handledBefore)
      return least >= messagesPerHost
    })
    await scene.killHost()
    await scene.startHost()
  }
  await scene.finish()

  // A publish that has this much time is acknowledged in the end, and stored once.
  const sent = publisher.events('publish-invoke').flatMap(({ messages }) => messages.map(({ value }) => value))
  assert.equal(await scene.stored(), new Set(sent).size)
})

const asksInVain = (child: Child) => child.told.some(({ code }) => code === 'unreachable')
