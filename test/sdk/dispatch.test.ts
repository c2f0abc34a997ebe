import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { HandlerContext, Message, MessageHandler } from '../../sdk/src/message.ts'
import {
  createDispatch,
  type DispatchDeps,
  type DispatchSettings,
  type FailedCall,
} from '../../sdk/src/worker/dispatch.ts'
import { createManualClock, settle } from './manual-clock.ts'

type Options = { messages?: number; settings?: Partial<DispatchSettings> } & Partial<
  Pick<DispatchDeps<undefined>, 'leaving' | 'bringAway' | 'preHandle' | 'postHandle' | 'trace'>
>

const settingsOf = (settings: Partial<DispatchSettings> = {}) => {
  return { threadSize: 1, consumerBatchSize: 1, timeout: 0, ...settings }
}
const offsetsOf = (messages: readonly Message[]) => messages.map(({ offset }) => offset)

function begin(
  handler: MessageHandler,
  { messages = 20, settings, ...options }: Options = {},
  clock = createManualClock(),
) {
  const waiting = Array.from({ length: messages }, (_, index) => ({ offset: index + 1 }) as Message)
  const finished: number[][] = []
  const failed: FailedCall[] = []
  const slow: [number[], number][] = []
  const dispatch = createDispatch<undefined>(
    {
      handler,
      queue: { groupName: 'g', topicName: 'orders', queueId: 7, commit: () => Promise.reject(new Error('none')) },
      take(max) {
        const taken = waiting.splice(0, max)
        return taken.length > 0 ? { messages: taken, mark: undefined } : undefined
      },
      finished: done => finished.push(offsetsOf(done)),
      stillOpen: open => open,
      leaving: () => [],
      bringAway: () => assert.fail(),
      onFailed: failure => failed.push(failure),
      onIdle: () => undefined,
      onSlow: (calls, runningMs) => slow.push([offsetsOf(calls), runningMs]),
      preHandle: undefined,
      postHandle: undefined,
      trace: { isOn: false, tell: () => assert.fail() },
      warnTimeoutMs: 300_000,
      clock,
      random: () => 0,
      ...options,
    },
    settingsOf(settings),
  )
  dispatch.pump()
  return { clock, waiting, finished, failed, slow, dispatch }
}

/** A handler as JavaScript may have it. */
const untyped = (handler: (messages: readonly Message[]) => unknown) => handler as MessageHandler

/** A handler whose calls end when told. */
function controlled() {
  const calls: { offsets: number[]; context: HandlerContext; resolve: () => void; reject: (error: unknown) => void }[] =
    []
  const handler: MessageHandler = (messages, context) =>
    new Promise<void>((resolve, reject) => {
      calls.push({ offsets: messages.map(({ offset }) => offset), context, resolve, reject })
    })
  return { calls, handler, offsets: () => calls.map(call => call.offsets) }
}

suite('dispatching', () => {
  test('runs up to threadSize calls at once, each with up to consumerBatchSize messages, in offset order', async () => {
    const { calls, handler, offsets } = controlled()
    begin(handler, { messages: 7, settings: { threadSize: 2, consumerBatchSize: 3 } })
    await settle()
    assert.deepEqual(offsets(), [
      [1, 2, 3],
      [4, 5, 6],
    ])
    calls[1]?.resolve()
    await settle()
    assert.deepEqual(offsets()[2], [7])
  })

  test('starts no more calls than there are messages for', async () => {
    const { handler, offsets } = controlled()
    begin(handler, { messages: 4, settings: { threadSize: 50, consumerBatchSize: 3 } })
    await settle()
    assert.deepEqual(offsets(), [[1, 2, 3], [4]])
  })

  test('tells a call its queue', async () => {
    const { calls, handler } = controlled()
    begin(handler)
    await settle()
    const { groupName, topicName, queueId, signal } = calls[0]?.context ?? assert.fail()
    assert.deepEqual([groupName, topicName, queueId, signal.aborted], ['g', 'orders', 7, false])
  })

  const endings: [string, MessageHandler][] = [
    ['returns nothing', () => undefined],
    ['returns null', untyped(() => null)],
    ['returns an empty array', () => []],
    ['resolves', async () => undefined],
    // biome-ignore lint/suspicious/noThenProperty: a promise of another library.
    ['returns a thenable that is no promise', untyped(() => ({ then: (resolve: () => void) => resolve() }))],
  ]
  for (const [what, handler] of endings) {
    test(`messages are done when the handler ${what}`, async () => {
      const { finished } = begin(handler, { messages: 3 })
      await settle()
      assert.deepEqual(finished, [[1], [2], [3]])
    })
  }

  const failures: [string, () => unknown][] = [
    [
      'throws an error',
      () => {
        throw new Error('no')
      },
    ],
    [
      'throws undefined',
      () => {
        throw undefined
      },
    ],
    ['rejects with an error', () => Promise.reject(new Error('no'))],
    ['rejects with null', () => Promise.reject(null)],
    // biome-ignore lint/suspicious/noThenProperty: a promise of another library.
    ['returns a thenable that rejects', () => ({ then: (_: unknown, reject: (error: unknown) => void) => reject(0) })],
  ]
  for (const [what, fail] of failures) {
    test(`a handler that ${what} gets the same messages again, until it succeeds; then others`, async () => {
      let left = 4
      const seen: number[] = []
      const handler = untyped(messages => {
        for (const { offset } of messages) seen.push(offset)
        return messages[0]?.offset === 1 && left-- > 0 ? fail() : undefined
      })
      const { clock, finished, failed } = begin(handler, { messages: 4, settings: { consumerBatchSize: 2 } })
      await clock.advance(10_000)
      assert.deepEqual(seen, [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 3, 4])
      assert.deepEqual(finished, [
        [1, 2],
        [3, 4],
      ])
      assert.equal(failed.length, 4)
    })
  }

  test('the pause before a repetition doubles from 100 ms to 30 s, and begins anew for other messages', async () => {
    let isFailing = true
    const { clock, failed } = begin(() => {
      if (isFailing) throw new Error('no')
    })
    await clock.advance(200_000)
    assert.deepEqual(
      failed.slice(0, 12).map(({ retryInMs }) => retryInMs),
      [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000, 30_000],
    )
    assert.deepEqual(
      failed.slice(0, 3).map(({ failed: [first], failures }) => [first?.offset, failures]),
      [
        [1, 1],
        [1, 2],
        [1, 3],
      ],
    )
    isFailing = false
    await clock.advance(30_000)
    isFailing = true
    assert.equal(failed.filter(({ failed: [first] }) => first?.offset !== 1).length, 0)
  })

  test('a failing call keeps its slot: with one slot the order stays strict, with more the others go on', async () => {
    for (const [threadSize, expected] of [
      [1, []],
      [2, [[2], [3], [4], [5]]],
    ] as const) {
      const handler: MessageHandler = ([message]) => {
        if (message?.offset === 1) throw new Error('no')
      }
      const { clock, finished, dispatch } = begin(handler, { messages: 5, settings: { threadSize } })
      await clock.advance(5_000)
      assert.deepEqual(finished, expected)
      assert.equal(dispatch.running, 1)
      await dispatch.stop()
    }
  })

  test('what a handler does to its array does not change what is repeated', async () => {
    const seen: number[] = []
    const { clock } = begin(
      messages => {
        seen.push(messages.length)
        ;(messages as Message[]).length = 0
        if (seen.length < 3) throw new Error('no')
      },
      { messages: 4, settings: { consumerBatchSize: 4 } },
    )
    await clock.advance(1_000)
    assert.deepEqual(seen, [4, 4, 4])
  })

  test('changed settings apply from the next call on, without a restart', async () => {
    const { calls, handler, offsets } = controlled()
    const { dispatch } = begin(handler, { messages: 12 })
    await settle()
    dispatch.update(settingsOf({ threadSize: 3, consumerBatchSize: 2 }))
    assert.deepEqual(offsets(), [[1], [2, 3], [4, 5]])
    dispatch.update(settingsOf({ threadSize: 1, consumerBatchSize: 5 }))
    calls[0]?.resolve()
    calls[1]?.resolve()
    await settle()
    assert.equal(calls.length, 3)
    calls[2]?.resolve()
    await settle()
    assert.deepEqual(offsets()[3], [6, 7, 8, 9, 10])
  })

  test('while paused nothing is started and nothing repeated; what runs may end', async () => {
    const { calls, handler } = controlled()
    const { clock, dispatch, finished } = begin(handler, { settings: { threadSize: 2 } })
    await settle()
    dispatch.setPaused(true)
    calls[0]?.reject(new Error('no'))
    calls[1]?.resolve()
    await clock.advance(60_000)
    assert.equal(calls.length, 2)
    assert.deepEqual(finished, [[2]])
    dispatch.setPaused(false)
    await settle()
    assert.deepEqual(
      calls.slice(2).map(({ offsets }) => offsets),
      [[1], [3]],
    )
  })

  test('stop starts nothing more, repeats nothing, and waits for what runs', async () => {
    const { calls, handler } = controlled()
    const { clock, dispatch, finished, failed } = begin(handler, { settings: { threadSize: 3 } })
    await settle()
    calls[0]?.reject(new Error('before the stop'))
    await settle()
    let isStopped = false
    void dispatch.stop().then(() => {
      isStopped = true
    })
    calls[1]?.resolve()
    await settle()
    assert.equal(isStopped, false)
    calls[2]?.reject(new Error('during the stop'))
    await settle()
    assert.equal(isStopped, true)
    await dispatch.stop()
    await clock.advance(60_000)
    assert.equal(calls.length, 3)
    assert.deepEqual(finished, [[2]])
    assert.deepEqual(
      failed.map(({ retryInMs }) => retryInMs),
      [100, undefined],
    )
  })

  test('abandoned calls see their signal abort, and nothing comes of what they end with', async () => {
    const { calls, handler } = controlled()
    const { dispatch, finished, failed } = begin(handler, { settings: { threadSize: 2 } })
    await settle()
    const early = calls[0]?.context.signal
    const reason = new Error('given up')
    dispatch.abandon(reason)
    assert.deepEqual([early?.aborted, early?.reason], [true, reason])
    assert.equal(calls[1]?.context.signal.aborted, true)
    calls[0]?.resolve()
    calls[1]?.reject(new Error('late'))
    await dispatch.stop()
    assert.deepEqual([finished, failed, calls.length], [[], [], 2])
  })

  test('handlers that never wait let the event loop turn', async () => {
    let handled = 0
    let turnsBefore = 0
    let turns = 0
    let nowMs = 0
    const clock = { ...createManualClock(), monotonic: () => nowMs }
    const turn = () => {
      turns++
      if (handled < 100) setImmediate(turn)
      else turnsBefore = turns
    }
    setImmediate(turn)
    const handler = () => {
      nowMs += 1
      handled++
    }
    begin(handler, { messages: 100 }, clock)
    while (turnsBefore === 0) await settle()
    assert.ok(turns >= 10, `${turns} turns`)
  })
})
