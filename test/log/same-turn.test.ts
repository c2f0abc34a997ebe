import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openInMemory, openOnDisk } from '../store/open-sqlite.ts'
import { createContainer, makeTopic, placeOf, readAll, send } from './containers.ts'

// What a process meets that was stopped for a while: its clients have given up and sent again, and it reads it all at once.
for (const [name, open] of Object.entries({ 'in memory': openInMemory, 'on disk': openOnDisk })) {
  test(`a host ${name} stores publishes once whose attempts reach it in one turn of the event loop`, async () => {
    const opened = await open()
    try {
      const { name: topicName, queueIds } = await makeTopic(opened.store, 1)
      const container = createContainer(opened.store)
      await send(container, topicName, ['before'])
      const attempts = (n: number) => {
        const publish = { publishId: `publish-${n}`, toQueue: queueIds[0] ?? 0 }
        return [
          send(container, topicName, [`${n}a`, `${n}b`], publish),
          send(container, topicName, [`${n}a`, `${n}b`], { ...publish, attempt: 2, attemptAgeMs: 0 }),
        ]
      }
      const answers = await Promise.all([1, 2, 3, 4, 5].flatMap(attempts))
      const places = answers.map(placeOf)
      assert.equal(new Set(places.map(({ offset }) => offset)).size, 5)
      const values = (await readAll(container, queueIds[0] ?? 0)).map(message => message.value)
      assert.deepEqual(values.toSorted(), ['1a', '1b', '2a', '2b', '3a', '3b', '4a', '4b', '5a', '5b', 'before'])
    } finally {
      await opened.close()
    }
  })
}
