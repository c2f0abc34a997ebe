import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import fc from 'fast-check'
import type { Core } from '../../core/core.ts'
import type { Call } from '../core/scripted-store.ts'
import { type Event, every, minute, openWorld, second, sessionTimeoutMs, type World } from './heartbeats.ts'

const ids = [1, 2, 3]
const awayFromMs = 2 * minute
type Kind = 'unavailable' | 'throttled'
const all = (kind: Kind) => () => kind

let world: World
afterEach(() => world.close())

/** Heartbeats of a consumer: every 10 s, but not while the store is away; then within 10 s of its return. */
function beats(core: () => Core, id: number, phaseMs: number, backAtMs: number, untilMs: number): Event[] {
  const before = every(10 * second, phaseMs, awayFromMs)
  const after = every(10 * second, backAtMs + phaseMs, untilMs)
  return [...before, ...after].map(atMs => ({ atMs, act: () => world.beat(core(), id) }))
}

/** The store is away from one time to another. */
const outage = (kind: Kind, backAtMs: number): Event[] => [
  { atMs: awayFromMs, act: () => world.fail(all(kind)) },
  { atMs: backAtMs, act: () => world.fail(undefined) },
]

describe('a store that was away for five minutes', () => {
  const backAtMs = awayFromMs + 5 * minute
  const untilMs = backAtMs + 3 * minute
  /** Each consumer is first heard at another time after the return; the first one looks for the others at once. */
  const phases = [0, 4 * second, 10 * second - 1]
  const living = (core: (id: number) => Core, who = ids) =>
    who.flatMap((id, i) => beats(() => core(id), id, phases[i] ?? 0, backAtMs, untilMs))

  for (const kind of ['unavailable', 'throttled'] as const) {
    test(`makes nobody expire, whoever hears them: ${kind}`, async () => {
      world = await openWorld(ids)
      const one = world.container()
      const own = new Map(ids.map(id => [id, world.container()]))
      // Some of them have tried, and this container has noticed; the others have not.
      const tries = every(10 * second, awayFromMs, backAtMs).map(atMs => ({ atMs, act: () => world.beat(one, 1) }))
      await world.play([...outage(kind, backAtMs), ...tries, ...living(() => one)])
      assert.deepEqual(await world.members(), ids)
      await world.close()

      world = await openWorld(ids)
      await world.play([...outage(kind, backAtMs), ...living(id => own.get(id) ?? one)])
      assert.deepEqual(await world.members(), ids)
    })
  }

  test('makes nobody expire for a container that did not notice it', async () => {
    world = await openWorld(ids)
    const one = world.container()
    await world.play([...outage('unavailable', backAtMs), ...living(() => one)])
    assert.deepEqual(await world.members(), ids)
  })

  test('makes nobody expire for containers that begin after it', async () => {
    world = await openWorld(ids)
    const [before, after] = [world.container(), world.container()]
    const core = () => (world.now() < backAtMs ? before : after)
    await world.play([...outage('unavailable', backAtMs), ...living(core)])
    assert.deepEqual(await world.members(), ids)
  })

  for (const [what, startsAtMs] of [
    ['that ran all the while', 0],
    ['that begins at the return', backAtMs],
  ] as const) {
    test(`makes nobody expire for a tick ${what}, whatever its second`, async () => {
      for (let phaseMs = 0; phaseMs < minute; phaseMs += 5 * second) {
        world = await openWorld(ids)
        const [one, ticking] = [world.container(), world.container()]
        const ticks = every(minute, startsAtMs + phaseMs, untilMs).map(atMs => ({
          atMs,
          act: () => world.tick(ticking),
        }))
        await world.play([...outage('unavailable', backAtMs), ...ticks, ...living(() => one)])
        assert.deepEqual(await world.members(), ids, `at second ${phaseMs / second}`)
        if (phaseMs + 5 * second < minute) await world.close()
      }
    })
  }

  test('does not keep one that died meanwhile: it is given up within half a minute of the others’ return', async () => {
    world = await openWorld(ids)
    const one = world.container()
    let givenUpAtMs = 0
    const looks = every(second, backAtMs, untilMs).map(atMs => ({
      atMs,
      act: async () => {
        if (givenUpAtMs === 0 && !(await world.members()).includes(3)) givenUpAtMs = atMs
      },
    }))
    const last = { atMs: awayFromMs - second, act: () => world.beat(one, 3) }
    await world.play([...outage('unavailable', backAtMs), last, ...living(() => one, [1, 2]), ...looks])
    assert.deepEqual(await world.members(), [1, 2])
    assert.ok(givenUpAtMs - backAtMs <= sessionTimeoutMs, `after ${(givenUpAtMs - backAtMs) / second} s`)
  })
})

test('an outage makes nobody expire, however long it is, whoever hears the consumers and whoever ticks', async () => {
  const scene = fc.record({
    awayMs: fc.integer({ min: 1, max: 8 * minute }),
    phases: fc.array(fc.integer({ min: 0, max: 10 * second - 1 }), { minLength: 3, maxLength: 3 }),
    /** Which container hears each consumer. */
    containers: fc.array(fc.nat(2), { minLength: 3, maxLength: 3 }),
    /** Which of them tries during the outage. */
    trying: fc.subarray(ids),
    tickPhase: fc.integer({ min: 0, max: minute - 1 }),
    tickEvery: fc.constantFrom(5 * second, minute),
  })
  await fc.assert(
    fc.asyncProperty(scene, async ({ awayMs, phases, containers, trying, tickPhase, tickEvery }) => {
      world = await openWorld(ids)
      const backAtMs = awayFromMs + awayMs
      const untilMs = backAtMs + 2 * minute
      const cores = [world.container(), world.container(), world.container()]
      const ticking = world.container()
      const coreOf = (id: number) => cores[containers[id - 1] ?? 0] ?? ticking
      const events = ids.flatMap(id => beats(() => coreOf(id), id, phases[id - 1] ?? 0, backAtMs, untilMs))
      for (const id of trying) {
        for (const atMs of every(10 * second, awayFromMs, backAtMs)) {
          events.push({ atMs, act: () => world.beat(coreOf(id), id) })
        }
      }
      for (const atMs of every(tickEvery, tickPhase, untilMs)) events.push({ atMs, act: () => world.tick(ticking) })
      await world.play([...outage('unavailable', backAtMs), ...events])
      assert.deepEqual(await world.members(), ids)
      await world.close()
    }),
    { numRuns: 60 },
  )
  world = await openWorld([])
})

test('a store that reads and takes no writes makes nobody expire, though a tick sees all of them silent', async () => {
  for (let phaseMs = 0; phaseMs < minute; phaseMs += 5 * second) {
    for (const awayMs of [75 * second, 5 * minute]) {
      world = await openWorld(ids)
      const [one, ticking] = [world.container(), world.container()]
      const backAtMs = awayFromMs + awayMs
      const untilMs = backAtMs + 3 * minute
      const ticks = every(minute, phaseMs, untilMs).map(atMs => ({ atMs, act: () => world.tick(ticking) }))
      const isRead = ({ operation }: Call) => operation.startsWith('read') || operation.startsWith('list')
      const events = ids.flatMap((id, i) => beats(() => one, id, (3 + 3 * i) * second, backAtMs, untilMs))
      await world.play([
        { atMs: awayFromMs, act: () => world.fail(call => (isRead(call) ? undefined : 'throttled')) },
        { atMs: backAtMs, act: () => world.fail(undefined) },
        ...ticks,
        ...events,
      ])
      assert.deepEqual(await world.members(), ids, `at second ${phaseMs / second} after ${awayMs}`)
      await world.close()
    }
  }
  world = await openWorld([])
})

test('a store that refuses the heartbeats of one makes not even that one expire', async () => {
  world = await openWorld(ids)
  const core = world.container()
  const events = ids.flatMap((id, i) =>
    every(10 * second, i * second, 6 * minute).map(atMs => ({ atMs, act: () => world.beat(core, id) })),
  )
  const isOfThree = ({ operation, args }: Call) => operation === 'heartbeat' && args[0] === 3
  await world.play([
    ...events,
    { atMs: awayFromMs, act: () => world.fail(call => (isOfThree(call) ? 'throttled' : undefined)) },
    { atMs: awayFromMs + 2 * minute, act: () => world.fail(undefined) },
  ])
  assert.deepEqual(await world.members(), ids)
})
