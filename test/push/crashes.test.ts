import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { type Store, StoreError } from '../../core/store.ts'
import { openSqliteStore } from '../../store/sqlite/open.ts'
import { createRunningClock } from '../support/manual-clock.ts'
import { openService } from '../wire/service.ts'
import { bodies, pushOf, sceneOf, serveTarget, setUp } from './push-setup.ts'

/**
 * The store of a process that dies at its operation number `at`: before that has an effect, or after. From then on nothing
 * that it does has any. `operations`: how many it has come to.
 */
function dyingStore(store: Store, at: number, when: 'before' | 'after') {
  const died = { operations: 0, isDead: false }
  const through = new Proxy(store, {
    get(target, name, receiver) {
      const member: unknown = Reflect.get(target, name, receiver)
      if (typeof member !== 'function' || name === 'close') return member
      return async (...given: unknown[]) => {
        died.operations++
        if (died.operations === at && when === 'after') await Reflect.apply(member, target, given)
        if (died.operations >= at) died.isDead = true
        if (died.isDead) throw new StoreError('unavailable', 'the process is dead')
        return Reflect.apply(member, target, given)
      }
    },
  })
  return { died, through }
}

const retryCount = 2
const bad = 'm3'
const settings = { consumerBatchSize: 2, threadSize: 2, retryCount }

const atOnce = 8

/** A run over a store that dies; then what the next process finds, and makes of it. */
async function crash(at: number, when: 'before' | 'after') {
  const clock = createRunningClock()
  const store = openSqliteStore(':memory:')
  const { died, through } = dyingStore(store, at, when)
  const { service, queueIds, publish } = await setUp({ queues: 1, store, clock, settings })
  await publish(bodies(6))
  const answering = ({ msgs }: { msgs: { id: number; body: string }[] }) => {
    return { suc: true, failIds: msgs.filter(({ body }) => body === bad).map(({ id }) => id) }
  }
  const before = await serveTarget(answering)
  const dying = openService({ store, through: () => through, clock })
  // With little time, so that what the dead one cannot do is not tried for long.
  const report = await pushOf(dying)
    .run(before.url, { timeLimitMs: 1_000 })
    .catch(() => undefined)

  const next = sceneOf(service, queueIds)
  const [offset = 0] = await next.committed()
  const stored = await next.failures()
  // What the claim of the dead one has kept is free when its time would have been up.
  next.later()
  const after = await serveTarget(answering)
  const push = pushOf(service)
  for (let time = 0; time < retryCount + 2; time++) {
    await push.run(after.url)
    next.later()
  }
  const result = {
    where: `killed ${when} operation ${at}`,
    report,
    offset,
    stored,
    operations: died.operations,
    isDead: died.isDead,
    before: before.bodies(),
    after: after.bodies(),
    failures: await next.failures(),
    lag: await next.lag(),
  }
  dying.core.arrivals.close()
  await service.close()
  return result
}

suite('a run that is killed', () => {
  test('at any operation of the store, before it or after, loses no message and no failure', async () => {
    const whole = await crash(Number.POSITIVE_INFINITY, 'before')
    assert.deepEqual([whole.report?.handled, whole.report?.failed, whole.isDead], [5, 1, false])
    assert.ok(whole.operations > 8, `${whole.operations} operations are few`)
    let points = 0
    for (let from = 1; from <= whole.operations; from += atOnce) {
      const some = Array.from({ length: Math.min(atOnce, whole.operations - from + 1) }, (_, index) => from + index)
      // They mostly wait for what the dead ones try still.
      const crashes = some.flatMap(at => (['before', 'after'] as const).map(when => crash(at, when)))
      for (const { where, isDead, offset, stored, before, after, failures, lag } of await Promise.all(crashes)) {
        // Where runs differ in a look or two, the last points may not come.
        if (!isDead) continue
        points++
        assert.ok(offset < 3 || stored.length > 0, `${where}: the bad one is in neither place`)
        assert.ok(new Set(before).size >= offset, `${where}: committed is what nobody was given`)
        assert.deepEqual(new Set([...before, ...after]), new Set(bodies(6)), where)
        const committed = bodies(offset).filter(body => body !== bad)
        assert.deepEqual(
          after.filter(body => committed.includes(body)),
          [],
          `${where}: repeats what was committed`,
        )
        const counts = failures.map(([body, count]) => (body === bad ? count : assert.fail(body)))
        assert.deepEqual([...new Set(counts)], [1, 2, 3], `${where}: failures ${counts}`)
        assert.equal(lag, 0, where)
      }
    }
    assert.ok(points >= 2 * (whole.operations - 3), `${points} of ${2 * whole.operations} points were come to`)
  })
})

test('a run whose failures cannot be stored commits nothing past them, and a later one has them again', async t => {
  const clock = createRunningClock()
  const store = openSqliteStore(':memory:')
  const scene = await setUp({ queues: 1, store, clock, settings })
  t.after(() => scene.service.close())
  await scene.publish(bodies(6))
  const through = new Proxy(store, {
    get(target, name, receiver) {
      if (name === 'appendBatch') return async () => Promise.reject(new StoreError('throttled', 'not now'))
      const member: unknown = Reflect.get(target, name, receiver)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
  const failing = openService({ store, through: () => through, clock })
  t.after(() => failing.core.arrivals.close())
  const target = await serveTarget(({ msgs }) => {
    return { suc: true, failIds: msgs.filter(({ body }) => body === bad).map(({ id }) => id) }
  })
  // Longer than progress gathers before it is committed.
  await pushOf(failing).run(target.url, { timeLimitMs: 2_000 })
  assert.deepEqual([await scene.committed(), await scene.failures(), await scene.claimants()], [[2], [], []])
  await pushOf(scene.service).run(target.url)
  assert.deepEqual([await scene.committed(), await scene.failures()], [[6], [[bad, 1]]])
})
