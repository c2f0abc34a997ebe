import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import type { GroupSnapshot } from '../../core/model.ts'
import { createSnapshots, type Snapshots } from '../../core/snapshots.ts'
import { groupOf } from '../store/contract.ts'
import { createManualClock, type ManualClock } from '../support/manual-clock.ts'

describe('a group that many ask for', () => {
  let clock: ManualClock
  let snapshots: Snapshots
  let version: number
  let reads: number
  let readTakesMs: number
  let failure: Error | undefined
  beforeEach(() => {
    clock = createManualClock()
    version = 1
    reads = 0
    failure = undefined
    readTakesMs = 0
    const readGroup = async (name: string): Promise<GroupSnapshot> => {
      reads++
      if (readTakesMs > 0) await clock.sleep(readTakesMs)
      if (failure) throw failure
      const nothing = { subscriptions: [], offsets: [], members: [], lost: [], copies: [] }
      return { group: { ...groupOf(name), version }, ...nothing }
    }
    snapshots = createSnapshots({ readGroup }, clock)
  })
  const versionOf = async (least: number) => (await snapshots.get('g', least))?.group.version
  const turn = () => new Promise(setImmediate)

  test('is read once for all who ask at the same time, and again later', async () => {
    assert.deepEqual(await Promise.all([versionOf(1), versionOf(1), versionOf(0)]), [1, 1, 1])
    assert.equal(reads, 1)
    clock.advance(100)
    await versionOf(1)
    assert.equal(reads, 2)
  })

  test('is never older than the version that is asked for', async () => {
    await versionOf(1)
    version = 2
    assert.equal(await versionOf(2), 2)
    assert.equal(await versionOf(1), 2)
    assert.equal(reads, 2)
  })

  test('is read for a part of the time only, however often it changes and whoever asks', async () => {
    readTakesMs = 2
    const answers: (number | undefined)[] = []
    for (version = 1; version < 1_000; version++) {
      const least = version
      void versionOf(least).then(found => answers.push((found ?? 0) - least))
      await turn()
      clock.advance(1)
      await turn()
    }
    for (let ms = 0; ms < 200; ms++) {
      clock.advance(1)
      await turn()
    }
    assert.equal(answers.length, 999)
    assert.ok(answers.every(difference => difference !== undefined && difference >= 0))
    assert.ok(reads > 20 && reads <= 70, `${reads} reads of 2 ms in 1,200 ms`)
  })

  test('is read anew after a read that failed, and those who shared that hear of it', async () => {
    failure = new Error('the store is away')
    const both = await Promise.allSettled([versionOf(1), versionOf(1)])
    assert.deepEqual(
      both.map(({ status }) => status),
      ['rejected', 'rejected'],
    )
    failure = undefined
    assert.equal(await versionOf(1), 1)
  })
})
