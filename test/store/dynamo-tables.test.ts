import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { DescribeTimeToLiveCommand, GetItemCommand } from '@aws-sdk/client-dynamodb'
import { createTables } from '../../store/dynamo/tables.ts'
import { engineClient, freshTableNames, openTestStore } from '../support/dynamo-store.ts'
import { dynoxide } from '../support/engines.ts'

const engine = dynoxide()

describe('the tables', { skip: engine.skip ?? false }, () => {
  test('are created once, with TTL, and creating them again changes nothing', async () => {
    const running = await engine.start()
    const client = engineClient(running.endpoint)
    try {
      const names = freshTableNames()
      await createTables(client, names)
      await createTables(client, names)
      for (const TableName of [names.logTable, names.registryTable]) {
        const { TimeToLiveDescription } = await client.send(new DescribeTimeToLiveCommand({ TableName }))
        assert.deepEqual(TimeToLiveDescription, { AttributeName: 'x', TimeToLiveStatus: 'ENABLED' })
      }
    } finally {
      client.destroy()
      await running.stop()
    }
  })

  test('hold a batch under names of one letter, due for deletion a day behind its retention, in seconds', async () => {
    const running = await engine.start()
    const client = engineClient(running.endpoint)
    const { store, tables, close } = await openTestStore(running)
    try {
      await store.appendBatch({
        queueId: 3,
        base: 11,
        count: 2,
        publishId: 'p',
        appendedAtMs: 1_800_000_000_123,
        expiresAtMs: 1_800_003_600_999,
        codec: 1,
        bytes: Buffer.from('bytes'),
      })
      const Key = { q: { N: '3' }, o: { N: '11' } }
      const { Item } = await client.send(new GetItemCommand({ TableName: tables.logTable, Key, ConsistentRead: true }))
      assert.deepEqual(
        { ...Item, b: Buffer.from(Item?.b?.B ?? []).toString() },
        {
          q: { N: '3' },
          o: { N: '11' },
          n: { N: '2' },
          b: 'bytes',
          c: { N: '1' },
          t: { N: '1800000000123' },
          p: { S: 'p' },
          e: { N: '1800003600999' },
          x: { N: String(1_800_003_600 + 86_400) },
        },
      )
    } finally {
      await close()
      client.destroy()
      await running.stop()
    }
  })
})
