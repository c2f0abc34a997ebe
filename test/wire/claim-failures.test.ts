import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Store } from '../../core/store.ts'
import { openSqliteStore } from '../../store/sqlite/open.ts'
import { type ScriptedStore, scriptStore } from '../core/scripted-store.ts'
import { claim, commit, fill, idsOf, openClaimed, renew } from './claiming.ts'
import { base } from './scene.ts'
import { openService, type Service } from './service.ts'

describe('a claim during which the store fails', () => {
  let service: Service
  let scripted: ScriptedStore<Store>
  let queueIds: number[]
  beforeEach(async () => {
    scripted = scriptStore(openSqliteStore(':memory:'))
    service = openService({ store: scripted.store })
    queueIds = await openClaimed(service, 12)
    await fill(service, queueIds)
  })
  afterEach(() => service.close())

  const asked = { ...base, consumerGroupName: 'g1', claimant: 'a', maxQueues: 100 }

  for (const fate of ['lost request', 'lost answer'] as const) {
    test(`answers with what was claimed before, and leaves the rest to others: ${fate}`, async () => {
      scripted.next('claimQueue', 'done', 'done', fate)
      const held = await claim(service, 'a')
      assert.equal(held.length, 2)
      for (const queue of held) {
        assert.equal((await renew(service, queue))?.outcome, 'renewed')
        assert.equal(await commit(service, queue, 1), 'advanced')
      }
      const others = await claim(service, 'b')
      assert.equal(others.length, fate === 'lost request' ? 10 : 9)
      assert.equal(new Set(idsOf([...held, ...others])).size, held.length + others.length)
    })

    test(`fails if nothing was claimed before, and may be repeated: ${fate}`, async () => {
      scripted.next('claimQueue', fate)
      assert.equal((await service.send('claimQueues', asked)).status, 503)
      assert.equal((await claim(service, 'a')).length, fate === 'lost request' ? 12 : 11)
    })
  }

  test('answers with what was claimed before also where the end of a log cannot be read', async () => {
    const firstTen = Array.from({ length: 10 }, () => 'done' as const)
    scripted.next('readHeaders', ...firstTen, 'lost request')
    const held = (await claim(service, 'a')).length
    // Two may have been of the fail topic, and empty.
    assert.ok(held >= 8 && held <= 10, `${held} were claimed`)
    assert.equal((await claim(service, 'b')).length, 12 - held)
  })

  test('leaves what it may have claimed without knowing to the end of the lease, and no longer', async () => {
    scripted.next('claimQueue', 'lost answer')
    const short = { ...asked, leaseMs: 5_000 }
    assert.equal((await service.send('claimQueues', short)).status, 503)
    service.clock.advance(5_000)
    assert.equal((await claim(service, 'b')).length, 12)
  })

  test('fails where the group cannot be read', async () => {
    scripted.next('readGroup', 'lost request')
    assert.equal((await service.send('claimQueues', asked)).status, 503)
    assert.equal((await claim(service, 'b')).length, 12)
  })

  test('is a defect of ours, and not an answer, if it is no failure of the store', async () => {
    scripted.next('claimQueue', 'done', () => {
      throw new TypeError('a defect')
    })
    assert.equal((await service.send('claimQueues', asked)).status, 500)
  })
})
