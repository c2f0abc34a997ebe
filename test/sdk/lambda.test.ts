import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { PmqClientError } from '../../sdk/src/errors.ts'
import type { HandlerContext, Message } from '../../sdk/src/message.ts'
import { bodies, passTime, recorder, setUp } from './lambda-setup.ts'

let scene: Awaited<ReturnType<typeof setUp>>
afterEach(() => scene.service.close())
const open = async (...given: Parameters<typeof setUp>) => {
  scene = await setUp(...given)
  return scene
}

const drained = { failed: 0, isDrained: true }

describe('an invocation', () => {
  test('claims, handles all there is, commits, gives the queues up, and reports', async () => {
    const { lambda, publish, queueIds, committed, claimants } = await open()
    const [first = 0, second = 0] = queueIds
    await publish(bodies(3), first)
    await publish(bodies(2), second)
    const { seen, handler } = recorder()
    const report = await lambda({ topics: { orders: handler } }).invoke()
    assert.deepEqual(report, { ...drained, handled: 5, queues: 2 })
    assert.deepEqual(seen.toSorted(), [`${first}:1`, `${first}:2`, `${first}:3`, `${second}:1`, `${second}:2`])
    assert.deepEqual(
      [await committed(), await claimants()],
      [
        [3, 2],
        [undefined, undefined],
      ],
    )
  })

  test('ends at once where there is nothing', async () => {
    const { lambda } = await open()
    const { invoke, calls } = lambda()
    assert.deepEqual(await invoke(), { ...drained, handled: 0, queues: 0 })
    assert.deepEqual(
      calls.map(({ name }) => name),
      ['claimQueues'],
    )
  })

  test('claims for as long as it may last and for its topics, in the name of its request', async () => {
    const { lambda, publish, claimants, clock, service } = await open()
    await publish(bodies(1))
    let holder: unknown
    const { start, named } = lambda({
      topics: {
        async orders() {
          holder = (await claimants())[0]
        },
      },
    })
    await service.pass(start(30_000))
    const request = named('claimQueues')[0]?.request
    assert.deepEqual([request?.leaseMs, request?.topicNames, request?.maxQueues], [30_000, ['orders'], 10])
    assert.match(String(holder), /^bill request-0 /)
    assert.ok(clock.monotonic() < 10_000)
  })

  test('claims again as long as there is something, also what came meanwhile', async () => {
    const { lambda, publish, queueIds, committed } = await open({ queues: 5 })
    for (const queueId of queueIds) await publish(bodies(2), queueId)
    let isLate = true
    const { invoke, named } = lambda({
      maxQueues: 2,
      topics: {
        async orders(messages) {
          const { queueId = 0, offset } = messages[0] ?? {}
          if (isLate && offset === 2) {
            isLate = false
            await publish(
              ['late'],
              queueIds.find(other => other !== queueId),
            )
          }
        },
      },
    })
    assert.deepEqual(await invoke(), { ...drained, handled: 11, queues: 5 })
    assert.deepEqual((await committed()).toSorted(), [2, 2, 2, 2, 3])
    for (const { request } of named('claimQueues')) assert.ok(Number(request.maxQueues) <= 2)
  })

  test('works on no more queues at a time than it may', async () => {
    const { lambda, publish, queueIds, service } = await open({ queues: 6 })
    for (const queueId of queueIds) await publish(bodies(3), queueId)
    let running = 0
    let most = 0
    const { start } = lambda({
      maxQueues: 3,
      topics: {
        async orders() {
          most = Math.max(most, ++running)
          await service.clock.sleep(200)
          running--
        },
      },
    })
    assert.equal((await service.pass(start())).handled, 18)
    assert.equal(most, 3)
  })

  test('passes messages by that are not for it, and drains them all the same', async () => {
    const { lambda, publish, committed } = await open({ queues: 1 })
    await publish(bodies(600))
    await publish(bodies(600))
    const { seen, handler } = recorder()
    const wanted = ({ body }: Message) => body === 'm550'
    const { invoke } = lambda({ topics: { orders: handler }, listeners: { filter: wanted } })
    assert.deepEqual(await invoke(), { ...drained, handled: 2, queues: 1 })
    assert.deepEqual([seen.length, await committed()], [2, [1_200]])
  })

  test('commits by hand where it is asked to', async () => {
    const { lambda, publish, committed } = await open({ queues: 1 })
    await publish(bodies(3))
    const { invoke } = lambda({
      commit: 'manual',
      topics: {
        async orders(messages: readonly Message[], { commit }: HandlerContext) {
          const { offset = 0 } = messages.at(-1) ?? {}
          void commit(offset)
        },
      },
    })
    assert.deepEqual(await invoke(), { ...drained, handled: 3, queues: 1 })
    assert.deepEqual(await committed(), [3])
  })

  test('calls listeners as a consumer does', async () => {
    const { lambda, publish } = await open({ queues: 1 })
    await publish(bodies(2))
    const told: string[] = []
    const { invoke } = lambda({ listeners: { postHandle: (_, __, { outcome }) => void told.push(outcome) } })
    assert.equal((await invoke()).handled, 2)
    assert.deepEqual(told, ['done', 'done'])
  })
})

describe('the end of its time', () => {
  test('stops an invocation at message k: those before are committed, the others are handed out again', async () => {
    const { lambda, publish, committed, claimants, service, clock } = await open({ queues: 1 })
    await publish(bodies(10))
    const first = recorder()
    const signals: AbortSignal[] = []
    const { start } = lambda({
      topics: {
        async orders(messages, { signal }) {
          first.handler(messages)
          if (messages[0]?.offset !== 4) return
          signals.push(signal)
          await clock.sleep(3_600_000, signal)
        },
      },
    })
    const startedAtMs = clock.monotonic()
    const report = await service.pass(start(10_000))
    assert.deepEqual(report, { handled: 3, failed: 0, queues: 1, isDrained: false })
    assert.equal(signals[0]?.aborted, true)
    const tookMs = clock.monotonic() - startedAtMs
    assert.ok(tookMs >= 7_000 && tookMs < 9_500, `it took ${tookMs} ms`)
    assert.deepEqual([await committed(), await claimants()], [[3], [undefined]])
    const second = recorder()
    assert.equal((await lambda({ topics: { orders: second.handler } }).invoke()).handled, 7)
    const numbers = (seen: readonly string[]) => seen.map(name => Number(name.split(':')[1]))
    assert.deepEqual(numbers(first.seen), [1, 2, 3, 4])
    assert.deepEqual(numbers(second.seen), [4, 5, 6, 7, 8, 9, 10])
  })

  test('lets calls end that began before', async () => {
    const { lambda, publish, committed, service, clock } = await open({ queues: 1 })
    await publish(bodies(10))
    let aborted = 0
    const { start } = lambda({
      topics: {
        async orders(_, { signal }) {
          await clock.sleep(1_500, signal)
          if (signal.aborted) aborted++
        },
      },
    })
    const report = await service.pass(start(10_000))
    assert.deepEqual(report, { handled: 4, failed: 0, queues: 1, isDrained: false })
    assert.deepEqual([aborted, await committed()], [0, [4]])
  })

  test('comes in spite of handlers that do not end', async () => {
    const { lambda, publish, service, clock } = await open({ queues: 1 })
    await publish(bodies(1))
    const { start } = lambda({ topics: { orders: () => new Promise<void>(() => {}) } })
    const report = await service.pass(start(20_000))
    assert.deepEqual(report, { handled: 0, failed: 0, queues: 1, isDrained: false })
    assert.ok(clock.monotonic() < 20_000)
  })

  test('comes in spite of a service that is away then', async () => {
    const { lambda, publish, service, clock } = await open({ queues: 1 })
    await publish(bodies(2))
    const { start, network } = lambda({
      topics: {
        async orders(messages) {
          if (messages[0]?.offset !== 2) return
          await clock.sleep(4_000)
          network.isCut = true
        },
      },
    })
    const report = await service.pass(start(10_000))
    assert.deepEqual(report, { handled: 2, failed: 0, queues: 1, isDrained: false })
    assert.ok(clock.monotonic() < 10_000)
    assert.equal(network.underWay, 0)
  })

  test('is refused where it leaves no time to work in', async () => {
    const { lambda } = await open()
    const { start, calls } = lambda({ reserveMs: 5_000 })
    await assert.rejects(start(5_000), { code: 'invalid_options', message: /5000 ms.*reserveMs \(5000\)/ })
    await assert.rejects(start(Number.NaN), { code: 'invalid_options' })
    assert.equal(calls.length, 0)
  })

  test('is that of its limit where there is no context, or that is later', async () => {
    const { lambda, publish, service, clock } = await open({ queues: 1 })
    await publish(bodies(1))
    const { handler, start, named } = lambda({
      timeLimitMs: 8_000,
      topics: { orders: (_, { signal }) => clock.sleep(3_600_000, signal) },
    })
    assert.equal((await service.pass(handler())).isDrained, false)
    assert.ok(clock.monotonic() < 8_000)
    await service.pass(start(900_000))
    assert.ok(clock.monotonic() < 16_000)
    assert.deepEqual(
      named('claimQueues').map(({ request }) => request.leaseMs),
      [8_000, 8_000],
    )
  })
})

describe('invocations', () => {
  test('that run at once share the queues, and each message is handled once', async () => {
    const { lambda, publish, queueIds, service, clock, committed } = await open({ queues: 6 })
    for (const queueId of queueIds) await publish(bodies(5), queueId)
    const { seen, handler } = recorder()
    const slow = async (messages: readonly Message[]) => {
      handler(messages)
      await clock.sleep(20)
    }
    const options = { maxQueues: 2, topics: { orders: slow } }
    const reports = await service.pass(Promise.all([1, 2, 3].map(() => lambda(options).start())))
    assert.equal(new Set(seen).size, 30)
    assert.equal(seen.length, 30)
    assert.equal(
      reports.reduce((sum, { handled }) => sum + handled, 0),
      30,
    )
    for (const { handled } of reports) assert.ok(handled > 0)
    assert.deepEqual(await committed(), [5, 5, 5, 5, 5, 5])
  })

  test('may run side by side in one container', async () => {
    const { lambda, publish, queueIds, service } = await open({ queues: 4 })
    for (const queueId of queueIds) await publish(bodies(5), queueId)
    const { seen, handler } = recorder()
    const { start } = lambda({ maxQueues: 2, topics: { orders: handler } })
    const reports = await service.pass(Promise.all([start(), start()]))
    assert.equal(
      reports.reduce((sum, { handled }) => sum + handled, 0),
      20,
    )
    assert.equal(new Set(seen).size, 20)
  })

  test('take over what a killed one held when its time would have been up, behind what it has committed', async () => {
    const { lambda, publish, service, clock, committed } = await open({ queues: 1 })
    await publish(bodies(6))
    const killed = lambda({
      syncCommit: true,
      topics: {
        async orders(messages) {
          await clock.sleep(10)
          if (messages[0]?.offset === 4) {
            killed.network.isCut = true
            await new Promise(() => {})
          }
        },
      },
    })
    const gone = killed.start(30_000)
    gone.catch(() => undefined)
    await passTime(service, 1_000)
    assert.deepEqual(await committed(), [3])
    const { seen, handler } = recorder()
    const next = lambda({ topics: { orders: handler } })
    assert.equal((await next.invoke(10_000)).handled, 0)
    await passTime(service, 30_000)
    assert.equal((await next.invoke()).handled, 3)
    assert.deepEqual(
      seen.map(name => name.split(':')[1]),
      ['4', '5', '6'],
    )
    await service.pass(gone)
  })

  test('that come late are fenced: they stop, and what they do no longer counts', async () => {
    const { lambda, publish, service, clock, committed, queueIds } = await open({ queues: 1 })
    await publish(bodies(4))
    const { promise: frozen, resolve: thaw } = Promise.withResolvers<void>()
    const late = lambda({
      topics: {
        async orders(messages) {
          if (messages[0]?.offset === 2) await frozen
          else await clock.sleep(600)
        },
      },
    })
    const running = late.start(600_000)
    await passTime(service, 2_000)
    assert.deepEqual(await committed(), [1])
    await service.call('resetOffsets', { of: { queueId: queueIds[0] }, to: { offset: 0 } }, { groupName: 'billing' })
    const other = recorder()
    assert.equal((await lambda({ topics: { orders: other.handler } }).invoke()).handled, 4)
    thaw()
    const report = await service.pass(running)
    assert.ok(late.types().includes('fenced'))
    assert.equal(report.handled, 2)
    assert.deepEqual(await committed(), [4])
  })
})

describe('between invocations', () => {
  test('nothing runs, no timer is set and no request is under way', async () => {
    const { lambda, publish, service, clock } = await open({ queues: 1, settings: { timeoutSeconds: 30 } })
    await publish(bodies(3))
    // The service's own.
    const asleep = clock.sleeping
    const { start, network, calls } = lambda({
      topics: { orders: async () => clock.sleep(5) },
    })
    await service.pass(start())
    assert.deepEqual([network.underWay, clock.sleeping], [0, asleep])
    const made = calls.length
    await passTime(service, 3_600_000, 600_000)
    assert.equal(calls.length, made)
  })

  test('also where the time was up in the midst of everything', async () => {
    const { lambda, publish, service, clock, queueIds } = await open({ queues: 4, settings: { timeoutSeconds: 60 } })
    for (const queueId of queueIds) await publish(bodies(3), queueId)
    const asleep = clock.sleeping
    let calls = 0
    const { start, network } = lambda({
      topics: {
        async orders(_, { signal }) {
          if (++calls % 2 === 0) throw new Error('no')
          await clock.sleep(3_600_000, signal)
        },
      },
    })
    assert.equal((await service.pass(start(10_000))).isDrained, false)
    assert.deepEqual([network.underWay, clock.sleeping], [0, asleep])
  })

  test('the clocks may jump: the next one works as the first', async () => {
    const { lambda, publish, service, clock } = await open({ queues: 1 })
    const { seen, handler } = recorder()
    const { start } = lambda({ topics: { orders: handler } })
    await publish(bodies(2))
    await service.pass(start())
    clock.advance(3_600_000)
    clock.step(86_400_000)
    await publish(bodies(2))
    assert.deepEqual(await service.pass(start()), { ...drained, handled: 2, queues: 1 })
    clock.step(-90_000_000)
    await publish(bodies(2))
    assert.equal((await service.pass(start())).handled, 2)
    assert.equal(seen.length, 6)
  })
})

describe('a service that is away', () => {
  test('at the start makes the invocation reject, after some tries and not late', async () => {
    const { lambda, publish, service, clock } = await open()
    await publish(bodies(1))
    const { start, network, calls, types } = lambda()
    network.isCut = true
    await assert.rejects(service.pass(start(900_000)), { code: 'unreachable' })
    assert.ok(calls.length > 3)
    assert.ok(clock.monotonic() < 20_000)
    assert.ok(types().every(type => type === 'request_failed'))
    network.isCut = false
    assert.equal((await service.pass(start())).handled, 1)
  })

  test('for a moment is waited for', async () => {
    const { lambda, publish } = await open()
    await publish(bodies(2))
    const { invoke, network } = lambda()
    let faults = 4
    network.fault = () => (faults-- > 0 ? 'unreachable' : undefined)
    assert.deepEqual(await invoke(), { ...drained, handled: 2, queues: 1 })
  })

  test('in the midst ends the invocation early; it rejects only if it has handled nothing', async () => {
    const { lambda, publish, service, clock } = await open({ queues: 1 })
    await publish(bodies(3))
    const nothing = lambda({ syncCommit: true })
    nothing.network.fault = ({ name }) => (name === 'claimQueues' ? undefined : 'unreachable')
    await assert.rejects(service.pass(nothing.start(600_000)), PmqClientError)
    assert.ok(clock.monotonic() < 60_000)
    clock.advance(600_000)
    const some = lambda({ maxPullBytes: 1 })
    some.network.fault = ({ name, request }) =>
      name === 'pullData' && Number(request.offsetStart) > 0 ? 'unreachable' : undefined
    assert.deepEqual(await service.pass(some.start(600_000)), { handled: 3, failed: 0, queues: 1, isDrained: false })
  })

  test('that refuses the claim makes the invocation reject at once, with its words', async () => {
    const { lambda, service } = await open()
    await service.call('createGroup', { name: 'shared' })
    const shared = lambda({ groupName: 'shared' })
    await assert.rejects(shared.invoke(), { code: 'refused', message: /group shared is balanced/ })
    assert.equal(shared.calls.length, 1)
    await assert.rejects(lambda({ groupName: 'nobody' }).invoke(), { code: 'refused' })
  })
})
