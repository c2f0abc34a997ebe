import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { type ClientErrorCode, PmqClientError } from '../../sdk/src/errors.ts'
import { bodies, recorder, setUp, upTo } from './consumer-setup.ts'
import type { Fault } from './fake-service.ts'
import { seededRandom } from './manual-clock.ts'

const failing = (code: ClientErrorCode, message: string, details = {}): Fault => {
  return { kind: 'fail', error: new PmqClientError(code, message, details) }
}

function withoutText(): Error {
  return Object.defineProperty(new Error(), 'message', {
    get() {
      throw new Error('no text')
    },
  })
}

/** What a network and what stands in it may do to a request; the transport's own tests say that these are its errors. */
const faults = {
  'a connection reset': { kind: 'lose_answer' },
  'a request that is lost': { kind: 'lose_request' },
  'a socket that never answers': { kind: 'hang' },
  'a name that is not found': failing('unreachable', 'getaddrinfo ENOTFOUND'),
  'a refused connection': failing('unreachable', 'connect ECONNREFUSED'),
  'a certificate that is not trusted': failing('unreachable', 'self-signed certificate'),
  'status 403': failing('unexpected_status', 'answered 403', { status: 403 }),
  'status 429': failing('throttled', 'answered 429', { status: 429, retryAfterMs: 7_000 }),
  'status 500': failing('internal', 'answered 500', { status: 500 }),
  'status 503': failing('unavailable', 'answered 503', { status: 503 }),
  'what is not JSON': failing('bad_answer', 'answered with what is not JSON'),
  'JSON that is no answer': { kind: 'answer', answer: [] },
  'an answer without what it is asked for': { kind: 'answer', answer: { suc: true, batches: [{}] } },
  'half an answer': failing('connection_lost', 'the answer was cut off'),
  'a transport that throws undefined': { kind: 'throw', thrown: undefined },
  'a transport that throws what has no text': { kind: 'throw', thrown: Object.create(null) },
  'a transport that throws an error without a text': { kind: 'throw', thrown: withoutText() },
  'a transport that asks for a pause without an end': failing('throttled', 'slower', { retryAfterMs: Infinity }),
  'a transport that asks for a pause that is no number': failing('throttled', 'slower', { retryAfterMs: Number.NaN }),
  'a refusal': { kind: 'answer', answer: { suc: false, msg: 'no' } },
} satisfies Record<string, Fault>

/** What a service may ask for at most; nothing else keeps a queue from being pulled for so long. */
const longestPauseMs = 60_000

suite('while the service fails', () => {
  for (const seed of [1, 2, 3]) {
    test(`a backlog is worked off through 200 pulls of which most fail, each in its own way (seed ${seed})`, async () => {
      const chance = seededRandom(seed)
      const { clock, consumer, log, service, committed } = setUp({ queues: 1 })
      const { seen, handler } = recorder()
      for (let batch = 0; batch < 100; batch++) log.put(1, bodies(5))
      const kinds = Object.values(faults)
      service.onRequest = operation => {
        if (operation !== 'pullData' || service.count('pullData') > 200 || chance() < 0.2) return undefined
        return kinds[Math.floor(chance() * kinds.length)]
      }
      const { start, stop, status, count } = consumer(handler, { maxPullBytes: 1 })
      await start()
      await clock.advanceUntil(() => committed()[0] === 500, 3_600_000)
      assert.deepEqual(seen, upTo(1, 500))
      const pulls = service.requests.filter(({ operation }) => operation === 'pullData').map(({ atMs }) => atMs)
      assert.ok(pulls.length > 200)
      const pauses = pulls.slice(1).map((atMs, index) => atMs - (pulls[index] ?? 0))
      assert.ok(Math.max(...pauses) <= longestPauseMs, `${Math.max(...pauses)} ms without a pull`)
      assert.ok(count('request_failed') > 100)
      assert.deepEqual([status().queues[0]?.failedPulls, status().queues[0]?.state], [0, 'running'])
      await stop()
    })
  }

  for (const [what, fault] of Object.entries(faults)) {
    test(`${what} for five minutes: it goes on trying in measure, says how it stands, and resumes`, async () => {
      const { clock, consumer, log, groups, service, committed } = setUp({ queues: 2 })
      const { seen, handler } = recorder()
      const made = consumer(handler)
      await made.start()
      log.put(1, bodies(3))
      await clock.advance(10_000)
      const lastPulls = made.status().queues.map(({ lastPullAtMs }) => lastPullAtMs)
      const beganAtMs = clock.now()
      service.requests.length = 0
      service.onRequest = () => fault
      log.put(1, bodies(3))
      log.put(2, bodies(3))
      await clock.advance(60_000)
      groups.expire(1)
      await clock.advance(240_000)

      const { state, queues } = made.status()
      assert.equal(state, 'running')
      for (const [index, { lastPullAtMs, failedPulls, state }] of queues.entries()) {
        // A pull that was held when the trouble began is answered still.
        assert.ok((lastPullAtMs ?? 0) >= (lastPulls[index] ?? 0) && (lastPullAtMs ?? 0) <= beganAtMs)
        assert.equal(state, 'running')
        assert.ok(failedPulls >= 5, `${failedPulls} failed pulls`)
      }
      const most = { pullData: 2 * 90, heartbeat: 250 }
      for (const [operation, limit] of Object.entries(most)) {
        const count = service.count(operation as keyof typeof most)
        assert.ok(count > 5 && count < limit, `${count} times ${operation}`)
      }

      service.onRequest = () => undefined
      await clock.advance(40_000)
      // What was handled and could not be committed comes again.
      assert.deepEqual([...new Set(seen)].toSorted(), [...upTo(1, 6), ...upTo(2, 3)])
      assert.deepEqual(committed(), [6, 3])
      assert.deepEqual(
        made.status().queues.map(({ failedPulls }) => failedPulls),
        [0, 0],
      )
      assert.deepEqual([made.count('registered'), made.count('expired')], [2, 1])
      await made.stop()
      assert.equal(clock.sleeping, 0)
    })
  }

  const listeners: [string, () => void][] = [
    [
      'throws',
      () => {
        throw new Error('listener')
      },
    ],
    ['rejects', async () => Promise.reject(new Error('listener'))],
  ]
  for (const [what, onEvent] of listeners) {
    test(`a listener that ${what} does not keep consumption from being resumed`, async () => {
      const { clock, consumer, log, groups, service, committed } = setUp({ queues: 2 })
      const { seen, handler } = recorder()
      const { start, stop } = consumer(handler, { onEvent })
      await start()
      log.put(1, bodies(3))
      await clock.advance(10_000)
      service.onRequest = () => ({ kind: 'unreachable' })
      log.put(1, bodies(3))
      log.put(2, bodies(3))
      await clock.advance(60_000)
      groups.expire(1)
      await clock.advance(60_000)
      service.onRequest = () => undefined
      await clock.advance(40_000)
      // What was handled and could not be committed comes again.
      assert.deepEqual([...new Set(seen)].toSorted(), [...upTo(1, 6), ...upTo(2, 3)])
      assert.deepEqual(committed(), [6, 3])
      await stop()
    })
  }
})
