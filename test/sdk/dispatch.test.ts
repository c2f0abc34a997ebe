import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { CallResult } from '../../sdk/src/consumer-listeners.ts'
import { PmqClientError } from '../../sdk/src/errors.ts'
import type { HandlerContext, Message, MessageHandler } from '../../sdk/src/message.ts'
import {
  createDispatch,
  type DispatchDeps,
  type DispatchSettings,
  type FailedCall,
} from '../../sdk/src/worker/dispatch.ts'
import { createManualClock, settle } from './manual-clock.ts'

type Options = { messages?: number; settings?: Partial<DispatchSettings> } & Partial<
  Pick<DispatchDeps<undefined>, 'leaving' | 'confirms' | 'bringAway' | 'preHandle' | 'postHandle' | 'trace'>
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
  let isStopped = false
  const dispatch = createDispatch<undefined>(
    {
      handler,
      queue: { groupName: 'g', topicName: 'orders', queueId: 7, commit: () => Promise.reject(new Error('none')) },
      take(max) {
        const taken = isStopped ? left.splice(0, max) : waiting.splice(0, max)
        return taken.length > 0 ? { messages: taken, mark: undefined } : undefined
      },
      finished: done => finished.push(offsetsOf(done)),
      stillOpen: open => open,
      leaving: () => [],
      confirms: () => false,
      bringAway: () => assert.fail(),
      onFailed: failure => failed.push(failure),
      onPostponed: () => assert.fail(),
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
  /** What may be taken of a queue that is given up: nothing, where it isn't said. */
  const left: Message[] = []
  const stop = (...offsets: number[]) => {
    isStopped = true
    left.push(...offsets.map(offset => ({ offset }) as Message))
    return dispatch.stop()
  }
  return {
    clock,
    waiting,
    finished,
    failed,
    slow,
    dispatch: Object.create(dispatch, { stop: { value: () => stop() } }) as typeof dispatch,
    stop,
  }
}

/** A handler as JavaScript may have it. */
const untyped = (handler: (messages: readonly Message[]) => unknown) => handler as MessageHandler

/** The promise with a `then` of its own, that throws. */
// biome-ignore lint/suspicious/noThenProperty: what other code may make of a promise.
const withThen = (promise: Promise<void>) => Object.assign(promise, { then: () => assert.fail() })

function revoked() {
  const { proxy, revoke } = Proxy.revocable([], {})
  revoke()
  return proxy
}

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
    ['returns a promise whose own then throws', () => withThen(Promise.resolve())],
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
    ['resolves with what cannot even be looked at', async () => [revoked()]],
    // biome-ignore lint/suspicious/noThenProperty: a promise of another library.
    ['returns a thenable that rejects', () => ({ then: (_: unknown, reject: (error: unknown) => void) => reject(0) })],
    // biome-ignore lint/suspicious/noThenProperty: a promise of another library.
    ['returns a thenable that throws', () => ({ then: () => assert.fail() })],
    ['rejects by a promise whose own then throws', () => withThen(Promise.reject(0))],
    [
      'returns a promise that cannot be waited for',
      () => Object.defineProperty(Promise.resolve(), 'constructor', { get: () => assert.fail() }),
    ],
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

  test('of a call that names some as failed the others are done, and only those are handed out again', async () => {
    const seen: number[][] = []
    const results = [[2, 4, 2], [4], []]
    const { clock, finished, failed } = begin(
      messages => {
        seen.push(offsetsOf(messages))
        return results[seen.length - 1]
      },
      { messages: 4, settings: { consumerBatchSize: 4 } },
    )
    await clock.advance(1_000)
    assert.deepEqual(seen, [[1, 2, 3, 4], [2, 4], [4]])
    assert.deepEqual(finished, [[1, 3], [2], [4]])
    assert.deepEqual(
      failed.map(call => [offsetsOf(call.messages), offsetsOf(call.failed), call.failures, call.error]),
      [
        [[1, 2, 3, 4], [2, 4], 1, undefined],
        [[2, 4], [4], 2, undefined],
      ],
    )
  })

  const malformed: [unknown, string][] = [
    [true, 'boolean'],
    [0, '0'],
    ['a secret body', 'string'],
    [{ failed: [1] }, 'object'],
    [{ length: 0 }, 'object'],
    [[3], 'an array with 3'],
    [[1, 3], 'an array with 3'],
    [['1'], 'an array with string'],
    [[null], 'an array with null'],
    [[1n], 'an array with bigint'],
    [[Number.NaN], 'an array with NaN'],
    [new Set([1]), 'object'],
  ]
  for (const how of ['returns', 'resolves with']) {
    test(`a call has failed as a whole when its handler ${how} anything else, or an offset that is not its own`, async () => {
      for (const [result, told] of malformed) {
        let isFirst = true
        const handler = untyped(() => {
          const returned = isFirst ? result : undefined
          isFirst = false
          return how === 'returns' ? returned : Promise.resolve(returned)
        })
        const { clock, finished, failed } = begin(handler, { messages: 2, settings: { consumerBatchSize: 2 } })
        await clock.advance(1_000)
        assert.deepEqual([offsetsOf(failed[0]?.failed ?? []), finished], [[1, 2], [[1, 2]]], told)
        const { error } = failed[0] ?? {}
        assert.ok(error instanceof PmqClientError)
        assert.equal(error.code, 'invalid_result')
        assert.ok(error.message.startsWith(`The handler returned ${told};`), error.message)
      }
    })
  }

  test('a handler that returns promises in an array has failed, whatever they end with, and nothing else has', async () => {
    const { clock, failed } = begin(
      untyped(messages => [
        ...messages.map(async ({ offset }) => {
          if (offset > 1) await clock.sleep(offset)
          throw new Error('no')
        }),
        revoked(),
      ]),
      { messages: 3, settings: { consumerBatchSize: 3 } },
    )
    await clock.advance(50)
    const codes = failed.map(({ error }) => (error as PmqClientError).code)
    assert.deepEqual(codes, ['invalid_result'])
  })

  test('however many calls fail, and in whatever way, their slots are free again', async () => {
    const ways = failures.map(([, fail]) => fail)
    let left = 2 * 3 * ways.length
    const handler = untyped(() => (left-- > 0 ? ways[left % ways.length]?.() : undefined))
    const { clock, finished } = begin(handler, { messages: 4, settings: { threadSize: 3 } })
    await clock.advance(600_000)
    assert.deepEqual(finished.toSorted(), [[1], [2], [3], [4]])
  })

  test('a call that takes too long has failed then: its signal aborts, it is repeated, and its end is ignored', async () => {
    const { calls, handler, offsets } = controlled()
    const { clock, failed, finished } = begin(handler, { messages: 2, settings: { timeout: 3 } })
    await clock.advance(2_999)
    const { signal } = calls[0]?.context ?? assert.fail()
    assert.equal(signal.aborted, false)
    await clock.advance(1)
    assert.ok(signal.aborted && signal.reason instanceof PmqClientError)
    assert.equal(signal.reason.code, 'handler_timeout')
    assert.deepEqual(
      failed.map(({ error, retryInMs }) => [error, retryInMs]),
      [[signal.reason, 100]],
    )
    calls[0]?.resolve()
    await clock.advance(100)
    assert.deepEqual([offsets(), finished], [[[1], [1]], []])
    assert.equal(calls[1]?.context.signal.aborted, false, 'the next attempt has a signal of its own')
    calls[1]?.resolve()
    await settle()
    assert.deepEqual(finished, [[1]])
    await assert.rejects(calls[0]?.context.commit(1) ?? assert.fail(), { code: 'handler_timeout' })
  })

  test('handlers that end in time are not touched by the time-out, and a changed one counts from the next call on', async () => {
    const { calls, handler } = controlled()
    const { clock, failed, dispatch } = begin(handler, { messages: 3, settings: { timeout: 10 } })
    await clock.advance(9_000)
    dispatch.update(settingsOf({ timeout: 2 }))
    await clock.advance(900)
    calls[0]?.resolve()
    await settle()
    await clock.advance(1_900)
    assert.equal(failed.length, 0)
    dispatch.update(settingsOf({ timeout: 0 }))
    await clock.advance(100)
    assert.deepEqual(offsetsOf(failed[0]?.failed ?? []), [2], 'the second call began under 2 s')
    await clock.advance(86_400_000)
    assert.equal(failed.length, 1)
  })

  test('what leaves is brought away in the slot of the call, and what stays is repeated behind that', async () => {
    const bringing: { leaving: number[]; failures: number; succeeded: number[]; end: (isAway: boolean) => void }[] = []
    const seen: number[][] = []
    const { clock, finished, failed } = begin(
      messages => {
        seen.push(offsetsOf(messages))
        return seen.length === 1 ? [2, 3] : []
      },
      {
        messages: 5,
        settings: { consumerBatchSize: 3 },
        leaving: messages => messages.filter(({ offset }) => offset === 2),
        bringAway: (leaving, failures, succeeded) =>
          new Promise(end => {
            bringing.push({ leaving: offsetsOf(leaving), failures, succeeded: offsetsOf(succeeded), end })
          }),
      },
    )
    await clock.advance(60_000)
    assert.deepEqual([seen, finished], [[[1, 2, 3]], [[1]]])
    assert.deepEqual(
      bringing.map(({ end: _, ...brought }) => brought),
      [{ leaving: [2], failures: 1, succeeded: [] }],
    )
    assert.deepEqual(offsetsOf(failed[0]?.leaving ?? []), [2])
    bringing[0]?.end(true)
    await clock.advance(100)
    assert.deepEqual(seen, [[1, 2, 3], [3], [4, 5]])
    assert.deepEqual(finished, [[1], [2], [3], [4, 5]])
  })

  test('where a success has to be told, it is done with when it was, and its slot starts nothing before', async () => {
    const telling: { leaving: number[]; succeeded: number[]; cause: unknown; end: (isTold: boolean) => void }[] = []
    const seen: number[][] = []
    const { clock, finished, dispatch } = begin(
      messages => {
        seen.push(offsetsOf(messages))
        return seen.length === 1 ? [2] : undefined
      },
      {
        messages: 5,
        settings: { consumerBatchSize: 2 },
        confirms: () => true,
        leaving: messages => messages,
        bringAway: (leaving, _, succeeded, cause) =>
          new Promise(end => {
            telling.push({ leaving: offsetsOf(leaving), succeeded: offsetsOf(succeeded), cause, end })
          }),
      },
    )
    await clock.advance(60_000)
    assert.deepEqual([seen, finished], [[[1, 2]], []])
    telling[0]?.end(true)
    await clock.advance(60_000)
    assert.deepEqual(
      [seen, finished],
      [
        [
          [1, 2],
          [3, 4],
        ],
        [[2, 1]],
      ],
    )
    assert.deepEqual(
      telling.map(({ end: _, ...told }) => told),
      [
        { leaving: [2], succeeded: [1], cause: { kind: 'returned' } },
        { leaving: [], succeeded: [3, 4], cause: undefined },
      ],
    )
    const stopped = dispatch.stop()
    telling[1]?.end(false)
    await stopped
    assert.deepEqual(finished, [[2, 1]], 'what could not be told stays to the next owner')
  })

  test('a stop still hands out what is left for it, as slots become free, and ends behind that', async () => {
    const { calls, handler, offsets } = controlled()
    const { finished, stop } = begin(handler, { messages: 9, settings: { threadSize: 2 } })
    await settle()
    let isStopped = false
    void stop(5, 6, 7).then(() => {
      isStopped = true
    })
    assert.deepEqual(offsets(), [[1], [2]])
    for (const offset of [1, 2, 5, 6]) {
      calls.find(call => call.offsets[0] === offset)?.resolve()
      await settle()
    }
    assert.deepEqual(offsets(), [[1], [2], [5], [6], [7]])
    assert.equal(isStopped, false)
    calls.at(-1)?.resolve()
    await settle()
    assert.deepEqual([isStopped, finished.flat()], [true, [1, 2, 5, 6, 7]])
  })

  test('what is left for a stop is repeated no more where it fails, and not asked for twice', async () => {
    let asked = 0
    const { clock, finished, stop } = begin(
      ([message]) => {
        if (message?.offset === 5) throw new Error('no')
      },
      { messages: 1, preHandle: async ([message]) => ++asked > 0 && message?.offset !== 6 },
    )
    await settle()
    await stop(5, 6, 7)
    assert.deepEqual([finished, asked, clock.sleeping], [[[1], [7]], 4, 0])
  })

  test('a stop waits for failures that are on their way', async () => {
    let end: (isAway: boolean) => void = () => undefined
    const handler = () => {
      throw new Error('no')
    }
    const { clock, finished, dispatch } = begin(handler, {
      leaving: messages => messages,
      bringAway: () =>
        new Promise(resolve => {
          end = resolve
        }),
    })
    await settle()
    let isStopped = false
    void dispatch.stop().then(() => {
      isStopped = true
    })
    await clock.advance(60_000)
    assert.equal(isStopped, false)
    end(true)
    await settle()
    assert.deepEqual([isStopped, finished], [true, [[1]]])
  })

  test('a call that runs long is told again and again, until it ends', async () => {
    const { calls, handler } = controlled()
    const { clock, slow } = begin(handler, { messages: 3, settings: { threadSize: 2 } })
    await clock.advance(200_000)
    calls[1]?.resolve()
    await clock.advance(450_000)
    calls[0]?.resolve()
    calls[2]?.resolve()
    await clock.advance(900_000)
    assert.deepEqual(slow, [
      [[1], 300_000],
      [[3], 300_000],
      [[1], 600_000],
    ])
  })

  test('a no before a call holds the whole queue, which is asked again less and less often', async () => {
    const asked: [number[], number][] = []
    let isHeld = true
    const { handler, offsets } = controlled()
    const clock = createManualClock()
    const preHandle = async (messages: readonly Message[]) => {
      asked.push([offsetsOf(messages), clock.monotonic()])
      return !isHeld
    }
    const { dispatch } = begin(handler, { messages: 3, settings: { threadSize: 2 }, preHandle }, clock)
    await clock.advance(20_000)
    assert.deepEqual(asked[0], [[1], 0])
    assert.deepEqual(
      asked.slice(1).map(([, atMs], index) => atMs - (asked[index]?.[1] ?? 0)),
      [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000],
    )
    assert.deepEqual([offsets(), dispatch.isHeld], [[], true])
    isHeld = false
    await clock.advance(5_000)
    assert.deepEqual([offsets(), dispatch.isHeld], [[[1], [2]], false])
  })

  test('a stop or a pause ends the asking', async () => {
    let asked = 0
    const { clock, dispatch } = begin(() => assert.fail(), { preHandle: async () => asked++ < 0 })
    await clock.advance(1_000)
    dispatch.setPaused(true)
    const before = asked
    await clock.advance(60_000)
    assert.equal(asked, before)
    dispatch.setPaused(false)
    await settle()
    assert.equal(asked, before + 1)
    await dispatch.stop()
    assert.deepEqual([asked, clock.sleeping], [before + 1, 0])
  })

  test('after each call it is told what became of it', async () => {
    const results: (CallResult & { offsets: number[] })[] = []
    const { calls, handler } = controlled()
    const { clock, dispatch } = begin(handler, {
      messages: 3,
      settings: { threadSize: 3 },
      postHandle: (messages, _, result) => void results.push({ offsets: offsetsOf(messages), ...result }),
    })
    await clock.advance(30)
    const error = new Error('no')
    calls[0]?.resolve()
    calls[1]?.reject(error)
    await settle()
    dispatch.abandon(new Error('given up'))
    calls[2]?.resolve()
    await settle()
    assert.deepEqual(results, [
      { offsets: [1], outcome: 'done', failed: [], error: undefined, durationMs: 30 },
      { offsets: [2], outcome: 'failed', failed: [2], error, durationMs: 30 },
      { offsets: [3], outcome: 'ignored', failed: [], error: undefined, durationMs: 30 },
    ])
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
