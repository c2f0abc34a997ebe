import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { dropFailed, resendFailed } from '../../core/admin/change-failed.ts'
import { publishAndUpdateResultFailMsg } from '../../core/client/failures.ts'
import type { Core } from '../../core/core.ts'
import type { FailedView } from '../../core/protocol/failed.ts'
import type { FailuresRequest } from '../../core/protocol/failures.ts'
import { type Store, StoreError } from '../../core/store.ts'
import { type Call, intercept } from '../core/scripted-store.ts'
import { createContainer } from '../log/containers.ts'
import type { ContractStore } from '../store/contract.ts'
import { openOnEngine } from '../store/open-engine.ts'
import { openInMemory } from '../store/open-sqlite.ts'
import { dynoxide } from '../support/engines.ts'
import { createHastyClock, createScene, type Place, type Scene, sendUntilTaken } from './scene.ts'

/** What is done to failed messages: what comes before, what the process does that dies, and what whoever asked does then. */
type Case = {
  prepare?: (core: Core, scene: Scene) => Promise<void>
  /** What a consumer sends. */
  request?: (scene: Scene) => Promise<FailuresRequest>
  /** What an operator asks for. */
  act?: (core: Core, scene: Scene) => Promise<unknown>
  /** State, count, attempts and resends of each record in the end. */
  expected: [FailedView['state'], number, number, number][]
}

const fail = async (core: Core, scene: Scene, queueId: number, messages: { id: number; retryCount: number }[]) => {
  const { suc } = await publishAndUpdateResultFailMsg(core, {
    ...(await scene.named(queueId)),
    ...scene.failures(messages),
  })
  assert.ok(suc)
}
const firstFailure = async (core: Core, scene: Scene) => {
  const messages = scene.origin.map(({ offset }) => ({ id: offset, retryCount: 1 }))
  await fail(core, scene, queueOf(scene), messages)
}
const lastFailure = async (core: Core, scene: Scene) => {
  await firstFailure(core, scene)
  const records = await scene.records()
  const queueId = records[0]?.place.queueId ?? 0
  await fail(
    core,
    scene,
    queueId,
    records.map(({ place }) => ({ id: place.offset, retryCount: 2 })),
  )
}
const queueOf = ({ origin }: Scene) => origin[0]?.queueId ?? 0
const placesOf = async (scene: Scene): Promise<Place[]> => (await scene.records()).map(({ place }) => place)

const cases: Record<string, Case> = {
  'failures of a topic': {
    request: async scene => ({
      ...(await scene.named(queueOf(scene))),
      ...scene.failures([1, 2].map(id => ({ id, retryCount: 1 }))),
    }),
    expected: [
      ['retrying', 1, 1, 0],
      ['retrying', 1, 1, 0],
    ],
  },
  'failures of a topic, by a client that says nothing of itself': {
    request: async scene => ({ queueId: queueOf(scene), ...scene.failures([1, 2].map(id => ({ id, retryCount: 1 }))) }),
    expected: [
      ['retrying', 1, 1, 0],
      ['retrying', 1, 1, 0],
    ],
  },
  'a last failure, and a success with it': {
    prepare: firstFailure,
    request: async scene => {
      const [one, two] = await placesOf(scene)
      assert.ok(one && two && one.queueId === two.queueId)
      const failures = scene.failures([{ id: one.offset, retryCount: 2 }])
      return { ...(await scene.named(one.queueId)), ...failures, ids: [two.offset] }
    },
    expected: [
      ['exhausted', 2, 2, 0],
      ['succeeded', 1, 1, 0],
    ],
  },
  'a success': {
    prepare: firstFailure,
    request: async scene => {
      const [one] = await placesOf(scene)
      return { ...(await scene.named(one?.queueId ?? 0)), ids: [one?.offset ?? 0] }
    },
    expected: [
      ['succeeded', 1, 1, 0],
      ['retrying', 1, 1, 0],
    ],
  },
  'a resend': {
    prepare: lastFailure,
    act: (core, { groupName, topicName }) =>
      resendFailed(core, groupName, topicName, { of: 'all', limit: 100, dryRun: false }),
    expected: [
      ['retrying', 0, 2, 1],
      ['retrying', 0, 2, 1],
    ],
  },
  'a drop': {
    prepare: lastFailure,
    act: (core, { groupName, topicName }) =>
      dropFailed(core, groupName, topicName, { of: 'all', limit: 100, dryRun: false, reason: 'a test' }),
    expected: [
      ['dropped', 2, 2, 0],
      ['dropped', 2, 2, 0],
    ],
  },
}

/**
 * What happens at the nth operation. `dies`: the process is gone from then on, and whoever asked hears an error. `hangs`:
 * nobody ever hears anything of it. `fails once`: the store is well again at the next operation.
 */
const ways = ['dies', 'hangs', 'fails once'] as const
type Way = (typeof ways)[number]

/** A store at whose nth operation something happens, of which that one may or may not have been done. */
function trouble(store: Store, n: number, way: Way, isDone: boolean) {
  let count = 0
  let hang: () => void = () => {}
  const hung = new Promise<void>(resolve => {
    hang = resolve
  })
  const troubled = intercept(store, async (call: Call) => {
    const at = ++count
    if (at < n || (at > n && way === 'fails once')) return call.run()
    if (at === n && isDone) await call.run()
    if (way === 'hangs') {
      hang()
      return new Promise(() => {})
    }
    throw new StoreError('unavailable', `the process died at ${call.operation}`)
  })
  return { store: troubled, hung, count: () => count }
}

function crashPoints(name: string, open: () => Promise<ContractStore>, skip?: string) {
  describe(`what dies in the middle of the failure path, on ${name},`, skip ? { skip } : {}, () => {
    let opened: ContractStore
    let fresh = 0
    before(async () => {
      opened = await open()
    })
    after(() => opened?.close())

    /** Plays a case in a group and a topic of its own, with trouble at the nth operation. */
    async function play({ prepare, request, act }: Case, n: number, way: Way, isDone: boolean) {
      const { store } = opened
      const clock = createHastyClock()
      const scene = await createScene(store, clock, `${++fresh}`)
      await prepare?.(createContainer(store, { clock }), scene)
      const before = await scene.records()
      const troubled = trouble(store, n, way, isDone)
      const process = createContainer(troubled.store, { clock })
      const sent = request && (await request(scene))
      const first = sent?.failMsg ? { ...sent, failMsg: { ...sent.failMsg, publishId: 'p-1', attempt: 1 } } : sent

      const acted = first ? publishAndUpdateResultFailMsg(process, first) : act?.(process, scene)
      let isTaken = false
      const heard = Promise.resolve(acted).then(
        answer => {
          isTaken = first !== undefined && (answer as { suc: boolean }).suc
        },
        error => assert.ok(error instanceof StoreError, String(error)),
      )
      await Promise.race([heard, troubled.hung])
      await assertInOnePlace(scene, sent, isTaken, before)

      // Who asked asks again: the same process, if it is there still, or another one.
      const next = way === 'fails once' ? process : createContainer(store, { clock })
      clock.advance(31_000)
      if (sent) await sendUntilTaken(next, sent, 2)
      else await act?.(next, scene)
      return { scene, operations: troubled.count() }
    }

    for (const [what, one] of Object.entries(cases)) {
      test(`${what}: each message is in at least one place at every point, and its record is right in the end`, async t => {
        const whole = await play(one, Number.POSITIVE_INFINITY, 'dies', false)
        t.diagnostic(`at each of ${whole.operations} operations, in six ways`)
        assert.ok(whole.operations >= 2)
        const letters = (await whole.scene.letters()).map(toText)
        for (let n = 1; n <= whole.operations; n++) {
          for (const way of ways) {
            for (const isDone of [false, true]) {
              const where = `operation ${n} ${way}, ${isDone ? 'done' : 'not done'}`
              const { scene } = await play(one, n, way, isDone)
              const records = await scene.records()
              const told = records.map(({ state, retryCount, attempts, resends }) => [
                state,
                retryCount,
                attempts,
                resends,
              ])
              assert.deepEqual(told, one.expected, where)
              const found = (await scene.letters()).map(toText)
              // Only what is resent after a crash may be there twice.
              const isAsOften = what === 'a resend' ? [...new Set(found)] : found
              assert.deepEqual(isAsOften.toSorted(), letters.toSorted(), where)
              assert.deepEqual(
                records.map(({ origin }) => origin),
                scene.origin,
                where,
              )
            }
          }
        }
      })
    }
  })
}

const toText = ({ message }: { message: { body: string; retryCount?: number | undefined } }) =>
  `${message.body} ${message.retryCount ?? 0}`

/**
 * P7. What was answered with success is in the fail topic, and recorded; what was not is where it came from, since its
 * consumer does not go past it. A dead letter stays where it is, whatever an operator has done.
 */
async function assertInOnePlace(
  scene: Scene,
  sent: FailuresRequest | undefined,
  isTaken: boolean,
  before: readonly FailedView[],
): Promise<void> {
  const letters = await scene.letters()
  const records = await scene.records()
  for (const { place } of before) {
    assert.ok(letters.some(({ queueId, offset }) => queueId === place.queueId && offset === place.offset))
  }
  for (const { place } of records) {
    assert.ok(letters.some(({ queueId, offset }) => queueId === place.queueId && offset === place.offset))
  }
  if (!isTaken) return
  for (const { id, retryCount } of sent?.failMsg?.msgs ?? []) {
    const copy = letters.find(({ message }) => message.retryCount === retryCount && message.failed?.from?.[1] === id)
    assert.ok(copy, 'what was taken is in the fail topic')
    assert.ok(
      records.some(({ place }) => place.queueId === copy.queueId && place.offset === copy.offset),
      'and recorded',
    )
  }
  for (const id of sent?.ids ?? []) {
    assert.ok(records.some(({ state, place }) => state === 'succeeded' && place.offset === id))
  }
}

const engine = dynoxide()
crashPoints('sqlite', openInMemory)
crashPoints(`dynamo on ${engine.name}`, () => openOnEngine(engine), engine.skip)
