import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { itemOfSubscription, subscriptionOf as ofItem } from '../../store/dynamo/items.ts'
import { keys } from '../../store/keys.ts'
import { openDatabase } from '../../store/sqlite/database.ts'
import { createSqliteStore } from '../../store/sqlite/open.ts'
import { createRecords } from '../../store/sqlite/records.ts'
import { groupOf, subscriptionOf } from './contract.ts'

/** What a version without limits of lag has stored. */
describe('a subscription that was made before there were limits of lag', () => {
  const subscription = { ...subscriptionOf('billing', 'orders'), maxLag: 0, maxLagSeconds: 0 }
  const { maxLag: _messages, maxLagSeconds: _seconds, ...older } = subscription

  test('has none on DynamoDB', () => {
    const { maxLag, maxLagSeconds, ...item } = itemOfSubscription({ ...subscription, maxLag: 7, maxLagSeconds: 60 })
    assert.deepEqual([maxLag, maxLagSeconds], [{ N: '7' }, { N: '60' }])
    assert.deepEqual(ofItem(item), subscription)
  })

  test('has none in SQLite, until it is changed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pmq-older-'))
    const database = openDatabase(join(folder, 'pmq.db'))
    const store = createSqliteStore(database)
    await store.createGroup(groupOf('billing'))
    await database.write(() => createRecords(database.writer).put(keys.subscription('billing', 'orders'), older))
    assert.deepEqual(await store.readSubscriptions('billing'), [subscription])
    assert.deepEqual((await store.readGroup('billing'))?.subscriptions, [subscription])
    const { groupName: _group, topicName: _topic, topicId: _id, failTopicId: _failId, ...settings } = subscription
    await store.updateSubscription('billing', 'orders', { ...settings, maxLag: 7 })
    assert.deepEqual(await store.readSubscriptions('billing'), [{ ...subscription, maxLag: 7 }])
    await store.close()
    await rm(folder, { recursive: true })
  })
})
