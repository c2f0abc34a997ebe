import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import fc from 'fast-check'
import type { Core } from '../../core/core.ts'
import { type Event, every, minute, openWorld, second, sessionTimeoutMs, type World } from './heartbeats.ts'

const ids = [1, 2, 3]
const hour = 60 * minute

let world: World
afterEach(() => world.close())

const beats = (core: () => Core, id: number, times: number[]): Event[] =>
  times.map(atMs => ({ atMs, act: () => world.beat(core(), id) }))
const ticks = (core: Core, times: number[]): Event[] => times.map(atMs => ({ atMs, act: () => world.tick(core) }))

/** Plays events, and says when a consumer was no member any more. */
async function givenUpAt(id: number, events: Event[]): Promise<number> {
  let atMs = Number.POSITIVE_INFINITY
  const watched = events.map(event => ({
    ...event,
    act: async () => {
      await event.act()
      if (atMs === Number.POSITIVE_INFINITY && !(await world.members()).includes(id)) atMs = event.atMs
    },
  }))
  await world.play(watched)
  return atMs
}

describe('a consumer that dies', () => {
  test('is given up within one and a half session time-outs by the heartbeats of one other', async () => {
    const phase = fc.integer({ min: 0, max: 10 * second - 1 })
    await fc.assert(
      fc.asyncProperty(phase, async phaseMs => {
        world = await openWorld([1, 2])
        const core = world.container()
        const times = every(10 * second, minute + phaseMs, 4 * minute)
        const atMs = await givenUpAt(2, [
          { atMs: minute, act: () => world.beat(core, 2) },
          ...beats(() => core, 1, times),
        ])
        assert.deepEqual(await world.members(), [1])
        const afterMs = atMs - minute
        assert.ok(afterMs > sessionTimeoutMs && afterMs <= 1.5 * sessionTimeoutMs, `after ${afterMs} ms`)
        await world.close()
      }),
      { numRuns: 40 },
    )
    world = await openWorld([])
  })

  test('is given up by the second tick that finds it silent, where there is nobody else', async () => {
    for (let phaseMs = second; phaseMs <= minute; phaseMs += 7 * second) {
      world = await openWorld([1])
      const core = world.container()
      const atMs = await givenUpAt(1, ticks(core, every(minute, phaseMs, 6 * minute)))
      const firstMs = phaseMs > sessionTimeoutMs / 2 ? phaseMs : phaseMs + minute
      assert.equal(atMs, firstMs + minute)
      await world.close()
    }
    world = await openWorld([])
  })

  test('is given up by the ticks of a host, every 5 s, as soon as by heartbeats', async () => {
    world = await openWorld([1])
    const atMs = await givenUpAt(1, ticks(world.container(), every(5 * second, second, 2 * minute)))
    assert.ok(atMs > sessionTimeoutMs && atMs <= 1.5 * sessionTimeoutMs)
  })
})

describe('consumers that live', () => {
  /** All of them, every 10 s. */
  const living = (core: () => Core, fromMs: number, untilMs: number) =>
    ids.flatMap((id, i) => beats(core, id, every(10 * second, fromMs + i * 3 * second, untilMs)))

  for (const [what, isNew] of [
    ['was off for an hour and has started', true],
    ['was suspended for an hour', false],
  ] as const) {
    test(`stay members of a host that ${what}, if they are heard within 10 s`, async () => {
      world = await openWorld(ids)
      const [before, later] = [world.container(), world.container()]
      const after = isNew ? later : before
      const [offMs, onMs, endMs] = [2 * minute, 2 * minute + hour, 4 * minute + hour]
      await world.play([
        ...living(() => before, 0, offMs),
        ...ticks(before, every(5 * second, second, offMs)),
        ...living(() => after, onMs + 3 * second, endMs),
        ...ticks(after, every(5 * second, onMs, endMs)),
      ])
      assert.deepEqual(await world.members(), ids)
    })
  }

  for (const changeMs of [hour, -hour, 20 * second, -20 * second, 40 * second, -40 * second]) {
    const what = `${Math.abs(changeMs) / second} s ${changeMs > 0 ? 'forwards' : 'back'}`
    test(`stay members though the clock is set ${what}, and one that has died is given up soon after`, async () => {
      world = await openWorld([...ids, 4])
      const [core, ticking] = [world.container(), world.container()]
      const [setMs, endMs] = [2 * minute, 5 * minute]
      await world.play([
        ...living(() => core, 0, endMs),
        ...ticks(ticking, every(minute, 7 * second, endMs)),
        ...beats(() => core, 4, every(10 * second, second, setMs)),
        { atMs: setMs, act: () => world.clock.step(changeMs) },
      ])
      assert.deepEqual(await world.members(), ids)
    })
  }

  test('stay members whatever the clocks of their containers say, a minute apart', async () => {
    world = await openWorld(ids)
    const fast = world.container(minute)
    const slow = world.container(-minute)
    const own = [world.container(), fast, slow]
    const events = ids.flatMap((id, i) =>
      beats(() => own[i] ?? fast, id, every(10 * second, i * 3 * second, 5 * minute)),
    )
    await world.play([...events, ...ticks(world.container(), every(5 * second, 0, 5 * minute))])
    assert.deepEqual(await world.members(), ids)
  })

  test('stay members where each of their heartbeats is heard by another container', async () => {
    world = await openWorld(ids)
    const cores = Array.from({ length: 7 }, () => world.container())
    let turn = 0
    const next = () => cores[turn++ % cores.length] ?? world.container()
    await world.play([...living(next, 0, 10 * minute), ...ticks(world.container(), every(minute, 0, 10 * minute))])
    assert.deepEqual(await world.members(), ids)
  })
})
