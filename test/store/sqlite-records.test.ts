import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { openDatabase } from '../../store/sqlite/database.ts'
import { createRecords } from '../../store/sqlite/records.ts'

const key = (sk: string) => ({ pk: 'P', sk })

describe('records in SQLite', () => {
  test('are removed when their time has ended, the oldest first and no more at once than asked; others stay', () => {
    const database = openDatabase(':memory:')
    const records = createRecords(database.writer)
    for (const endsAtMs of [30, 10, 20]) records.put(key(`until ${endsAtMs}`), { endsAtMs }, endsAtMs)
    records.put(key('for good'), {})
    const left = () => records.list('P').map(({ sk }) => sk)

    assert.equal(records.removeEnded(9, 10), 0)
    assert.equal(records.removeEnded(20, 1), 1)
    assert.deepEqual(left(), ['for good', 'until 20', 'until 30'])
    assert.equal(records.removeEnded(20, 10), 1)
    assert.equal(records.removeEnded(1e15, 10), 1)
    assert.deepEqual(left(), ['for good'])
    database.close()
  })

  test('stay for good once they are put so', () => {
    const database = openDatabase(':memory:')
    const records = createRecords(database.writer)
    records.put(key('a'), {}, 10)
    records.put(key('a'), {})
    assert.equal(records.removeEnded(20, 10), 0)
    database.close()
  })

  test('of a file that knows of no such time are there, and may have one from then on', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pmq-records-'))
    const path = join(folder, 'pmq.db')
    const former = new DatabaseSync(path)
    former.exec(`
      CREATE TABLE registry (pk TEXT NOT NULL, sk TEXT NOT NULL, doc TEXT NOT NULL, PRIMARY KEY (pk, sk)) STRICT, WITHOUT ROWID;
      INSERT INTO registry VALUES ('P', 'old', '{"is":"there"}');
    `)
    former.close()
    const database = openDatabase(path)
    const records = createRecords(database.writer)
    records.put(key('new'), {}, 10)
    assert.equal(records.removeEnded(10, 10), 1)
    assert.deepEqual(records.list('P'), [{ sk: 'old', doc: { is: 'there' } }])
    database.close()
    await rm(folder, { recursive: true })
  })
})
