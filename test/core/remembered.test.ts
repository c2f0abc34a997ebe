import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { groupArrival } from '../../core/arrivals.ts'
import { groupHasChanged } from '../../core/core.ts'
import type { Store } from '../../core/store.ts'
import { createContainer, makeTopic } from '../log/containers.ts'
import { groupOf } from '../store/contract.ts'
import { openInMemory } from '../store/open-sqlite.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { scriptStore } from './scripted-store.ts'

describe('what a container remembers of topics and groups', () => {
  let store: Store
  before(async () => {
    store = (await openInMemory()).store
  })
  after(() => store.close())

  const create = () => {
    const clock = createManualClock()
    const scripted = scriptStore(store)
    const settings = { topicCacheMs: 2_000, groupCacheMs: 1_000 }
    const core = createContainer(scripted.store, { clock, settings })
    const reads = () => scripted.calls.length
    return { ...scripted, clock, core, reads }
  }

  test('is read once while it is young, also by those who ask at once', async () => {
    const { name } = await makeTopic(store, 1)
    const { core, clock, reads } = create()
    await Promise.all([core.topics.get(name), core.topics.get(name)])
    clock.step(1_999)
    assert.equal((await core.topics.get(name))?.topic.name, name)
    assert.equal(reads(), 1)
    clock.step(1)
    await core.topics.get(name)
    assert.equal(reads(), 2)
  })

  test('is read again when the clock has gone back', async () => {
    const { name } = await makeTopic(store, 1)
    const { core, clock, reads } = create()
    await core.topics.get(name)
    clock.step(-1)
    await core.topics.get(name)
    assert.equal(reads(), 2)
  })

  test('is not that something is absent, nor that it could not be read', async () => {
    const { core, next, reads } = create()
    assert.equal(await core.groups.get('later'), undefined)
    await store.createGroup(groupOf('later'))
    next('readGroupRecord', 'lost request')
    await assert.rejects(core.groups.get('later'))
    assert.equal((await core.groups.get('later'))?.name, 'later')
    assert.equal(reads(), 3)
  })

  test('is dropped when the group has changed, and who waits for it is woken', async () => {
    const { core, reads } = create()
    await store.createGroup(groupOf('changing'))
    await core.groups.get('changing')
    await store.raiseMeta('changing')
    const woken = core.arrivals.wait(core.arrivals.mark([groupArrival('changing')]), 1_000)
    groupHasChanged(core, 'changing')
    assert.equal(await woken, 'announced')
    assert.equal((await core.groups.get('changing'))?.version, 2)
    assert.equal(reads(), 2)
  })

  test('is not replaced by the late answer to a read from before the change', async () => {
    const { core, next } = create()
    await store.createGroup(groupOf('raced'))
    let answer: (group: unknown) => void = () => {}
    next('readGroupRecord', () => new Promise(resolve => (answer = resolve)))
    const early = core.groups.get('raced')
    await Promise.resolve()
    const old = await store.readGroupRecord('raced')
    await store.raiseMeta('raced')
    groupHasChanged(core, 'raced')
    assert.equal((await core.groups.get('raced'))?.version, 2)
    answer(old)
    assert.equal((await early)?.version, 1)
    assert.equal((await core.groups.get('raced'))?.version, 2)
  })
})
