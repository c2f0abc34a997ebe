import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { clearedKeptMs } from '../../core/alarms/alarm.ts'
import { openSqliteStore, type SqliteStore } from '../../store/sqlite/open.ts'
import { batchOf, queueOf, topicOf } from './contract.ts'

describe('the SQLite store', () => {
  let folder: string
  let store: SqliteStore
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pmq-upkeep-'))
    store = openSqliteStore(join(folder, 'pmq.db'))
  })
  afterEach(async () => {
    await store.close()
    await rm(folder, { recursive: true })
  })

  const bases = async (queueId: number) => {
    const query = { queueId, fromOffset: 1, direction: 'forward', limit: 100, consistent: true } as const
    return (await store.readHeaders(query)).map(header => header.base)
  }

  test('trims what is past retention from the head of each queue, and keeps the last batch whatever its age', async () => {
    for (const [queueId, ages] of [
      [1, [10, 20, 90]],
      [2, [10, 20, 30]],
    ] as const) {
      for (const [i, expiresAtMs] of ages.entries()) await store.appendBatch(batchOf(queueId, i + 1, { expiresAtMs }))
    }
    assert.equal(await store.trim(50, 100), 4)
    assert.deepEqual([await bases(1), await bases(2)], [[3], [3]])
    assert.equal(await store.trim(50, 100), 0)
  })

  test('trims no more at once than it may', async () => {
    for (let base = 1; base <= 5; base++) await store.appendBatch(batchOf(1, base, { expiresAtMs: 10 }))
    assert.equal(await store.trim(50, 3), 3)
    assert.deepEqual(await bases(1), [4, 5])
  })

  test('forgets an alarm a month after it was over, and not one that was raised again', async () => {
    const alarm = { kind: 'lag', topicName: 'orders', facts: {}, raisedAtMs: 1, isTold: true, revision: 1 } as const
    for (const groupName of ['open', 'over', 'again']) {
      await store.putAlarm({ ...alarm, groupName })
      if (groupName !== 'open') await store.putAlarm({ ...alarm, groupName, clearedAtMs: 2, revision: 2 })
      if (groupName === 'again') await store.putAlarm({ ...alarm, groupName, raisedAtMs: 3, revision: 3 })
    }
    assert.equal(await store.removeEnded(2 + clearedKeptMs - 1, 10), 0)
    assert.equal(await store.removeEnded(2 + clearedKeptMs, 10), 1)
    assert.deepEqual((await store.listAlarms()).map(({ groupName }) => groupName).sort(), ['again', 'open'])
  })

  describe('of a queue that was removed from its topic', () => {
    beforeEach(async () => {
      await store.createTopic(
        topicOf('orders'),
        [1, 2].map(queueId => queueOf('orders', queueId)),
      )
      for (const queueId of [1, 2]) {
        for (let base = 1; base <= 3; base++) {
          await store.appendBatch(batchOf(queueId, base, { expiresAtMs: base * 10 }))
        }
      }
      await store.setReadOnly('orders', 1, 1)
    })

    test('trims the last batch too, once its retention has ended, and not before', async () => {
      await store.removeQueue('orders', 1)
      assert.equal(await store.trim(20, 100), 4)
      assert.deepEqual([await bases(1), await bases(2)], [[3], [3]])
      assert.equal(await store.trim(29, 100), 0)
      assert.equal(await store.trim(30, 100), 1)
      assert.deepEqual([await bases(1), await bases(2)], [[], [3]])
      assert.equal(await store.trim(1e9, 100), 0)
      assert.deepEqual([await bases(1), await bases(2)], [[], [3]])
    })

    test('trims no more at once than it may', async () => {
      await store.removeQueue('orders', 1)
      const trimmed = []
      for (let i = 0; i < 4; i++) trimmed.push(await store.trim(50, 2))
      assert.deepEqual(trimmed, [2, 2, 1, 0])
      assert.deepEqual([await bases(1), await bases(2)], [[], [3]])
    })

    test('keeps the last batch while it is read-only and still there', async () => {
      assert.equal(await store.trim(50, 100), 4)
      assert.deepEqual([await bases(1), await bases(2)], [[3], [3]])
    })

    test('does so after the file was opened again', async () => {
      await store.removeQueue('orders', 1)
      await store.close()
      store = openSqliteStore(join(folder, 'pmq.db'))
      assert.equal(await store.trim(50, 100), 5)
      assert.deepEqual(await bases(1), [])
    })
  })

  test('asks for a slower pace while another program has the file locked, and goes on when it has not', async () => {
    const other = new DatabaseSync(join(folder, 'pmq.db'))
    other.exec('BEGIN IMMEDIATE')
    await assert.rejects(store.takeIds('topic', 1), { name: 'StoreError', kind: 'throttled' })
    other.exec('ROLLBACK')
    other.close()
    assert.equal(await store.takeIds('topic', 1), 1)
  })

  test('refuses everything once a write has failed, and says so once', async () => {
    const failures: string[] = []
    const failing = openSqliteStore(join(folder, 'failing.db'), { onFailure: error => failures.push(error.message) })
    const breaker = new DatabaseSync(join(folder, 'failing.db'))
    breaker.exec('DROP TABLE registry')
    breaker.close()
    for (let i = 0; i < 2; i++) {
      await assert.rejects(failing.takeIds('topic', 1), { name: 'StoreError', kind: 'unavailable' })
      await assert.rejects(failing.readGroup('g'), { name: 'StoreError', kind: 'unavailable' })
    }
    assert.equal(failures.length, 1)
    await failing.close()
  })
})
