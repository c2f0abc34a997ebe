import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { ask, memberIds, owned, start } from './placing.ts'
import { base, createGroup, createTopic } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(async () => {
  service = openService()
  await createTopic(service, 't1', 6)
  await createGroup(service, 'g1', ['t1'])
})
afterEach(() => service.close())

const at = (instanceId: string) => ({ instanceId })
const leave = (id: number) => service.call('deRegister', { ...base, id })

describe('a consumer that was given up and comes back', () => {
  const returning = { instanceId: '0', returning: true }

  test('is refused where its place was taken, told so, and disturbs nobody', async () => {
    const holder = await start(service, 'a2', at('0'))
    const before = await owned(service, holder)
    const answer = await ask(service, 'a', returning)
    assert.deepEqual([answer.suc, answer.replaced], [false, true])
    assert.equal(answer.msg, 'another consumer has taken the place 0 in group g1')
    assert.deepEqual([await owned(service, holder), await memberIds(service)], [before, [holder]])
  })

  test('is let in where its place is free', async () => {
    const other = await start(service, 'b', at('1'))
    const back = await start(service, 'a', returning)
    assert.deepEqual(await memberIds(service), [other, back])
  })

  test('may ask twice, if it did not hear the answer', async () => {
    const back = await start(service, 'a', returning)
    assert.equal(await start(service, 'a', returning), back)
    assert.deepEqual(await memberIds(service), [back])
  })

  test('may come back without a place', async () => {
    const first = await start(service, 'a')
    await leave(first)
    const back = await start(service, 'a', { returning: true })
    assert.notEqual(back, first)
    assert.deepEqual(await memberIds(service), [back])
  })

  test('is let in where what is left of its place is its own former membership', async () => {
    const former = await start(service, 'a', at('0'))
    // Whoever gives it up has removed the consumer, and has not come to its groups yet.
    await service.core.store.removeConsumer(former)
    const back = await start(service, 'a', returning)
    assert.notEqual(back, former)
    assert.deepEqual(await memberIds(service), [back])
    assert.equal(Object.keys(await owned(service, back)).length, 6)
  })
})
