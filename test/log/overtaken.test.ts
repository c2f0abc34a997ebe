import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Store } from '../../core/store.ts'
import { openInMemory } from '../store/open-sqlite.ts'
import { createContainer, makeTopic, placeOf, readAll, send } from './containers.ts'

test('a publish that waits for its turn is stored once, though its retry overtakes it in another container', async () => {
  const opened = await openInMemory()
  try {
    // As DynamoDB is: answers come when they come, so that one container appends one batch after the other.
    const concurrent: Store = { ...opened.store, appendsInOrder: false }
    const gate = Promise.withResolvers<void>()
    let isGated = false
    const slow: Store = {
      ...concurrent,
      async appendBatch(batch) {
        if (isGated) await gate.promise
        return opened.store.appendBatch(batch)
      },
    }
    const { name, queueIds } = await makeTopic(opened.store, 1)
    const [first, second] = [createContainer(slow), createContainer(concurrent)]
    await send(first, name, ['warm'], { key: 'k' })
    await send(second, name, ['warm as well'], { key: 'k' })

    isGated = true
    const other = send(first, name, ['other'], { key: 'k' })
    const waiting = send(first, name, ['pay 100'], { key: 'k', publishId: 'pay' })
    const retried = await send(second, name, ['pay 100'], { key: 'k', publishId: 'pay', attempt: 2, attemptAgeMs: 10 })
    gate.resolve()
    await other
    assert.deepEqual(placeOf(await waiting), placeOf(retried))
    const values = (await readAll(createContainer(opened.store), queueIds[0] ?? 0)).map(message => message.value)
    assert.deepEqual(values, ['warm', 'warm as well', 'pay 100', 'other'])
  } finally {
    await opened.close()
  }
})
