import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { ChangeFailedView } from '../../core/protocol/failed.ts'
import { openSqliteStore } from '../../store/sqlite/open.ts'
import { scriptStore } from '../core/scripted-store.ts'
import { drop, type Failing, failedOf, failName, list, only, resend, startFailing } from './failing.ts'
import { live, startJavaClient } from './java-client.ts'
import { openNodeClient } from './node-client.ts'
import { refusal } from './operator.ts'
import { base, createGroup, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
let failing: Failing
let store: ReturnType<typeof scriptStore<ReturnType<typeof openSqliteStore>>>
beforeEach(async () => {
  store = scriptStore(openSqliteStore(':memory:'))
  service = openService({ store: store.store })
  failing = await startFailing(service)
  await service.call('subscribe', { retryCount: 1 }, failedOf)
})
afterEach(() => service.close())

const outcomes = ({ results }: ChangeFailedView) => results.map(({ outcome }) => outcome)

/** What lies in the fail topic: each body with its count. */
async function stored(): Promise<[string, number][]> {
  const found: [string, number][] = []
  for (const { queueId } of failing.failQueues) {
    const asked = { ...base, queueId, offsetStart: 0, offsetEnd: 900, topicName: failName, consumerGroupName: 'g1' }
    for (const { body, retryCount } of (await service.call('pullData', asked)).msgs ?? [])
      found.push([body, retryCount])
  }
  return found.toSorted(([a, n], [b, m]) => a.localeCompare(b) || n - m)
}

describe('a dead letter that is resent', () => {
  test('is handled again as often as a new failure, and keeps its history', async () => {
    const dead = await failing.exhaust('bad')
    assert.deepEqual([dead.attempts, dead.retryCount], [2, 2])
    service.clock.advance(3_600_000)
    const answer = await resend(service, { of: { failedIds: [dead.failedId] } })
    assert.deepEqual(answer, { matched: 1, results: [{ failedId: dead.failedId, outcome: 'resent' }] })
    assert.deepEqual(await stored(), [
      ['bad', 0],
      ['bad', 1],
      ['bad', 2],
    ])
    const resent = await only(service)
    assert.deepEqual(resent, {
      ...dead,
      state: 'retrying',
      place: resent.place,
      retryCount: 0,
      resends: 1,
      resentAtMs: service.clock.now(),
      endsAtMs: service.clock.now() + 14 * 86_400_000,
    })
    await failing.fail(resent.place)
    const again = await only(service)
    assert.deepEqual(
      [again.state, again.retryCount, again.attempts, again.resends, again.resentAtMs, again.origin],
      ['retrying', 1, 3, 1, resent.resentAtMs, dead.origin],
    )
    await failing.fail(again.place)
    const deadAgain = await only(service)
    assert.deepEqual([deadAgain.state, deadAgain.attempts, deadAgain.retryCount], ['exhausted', 4, 2])
    await resend(service, { of: 'all' })
    assert.deepEqual([(await only(service)).resends, (await only(service)).attempts], [2, 4])
    const { history } = await service.call('getFailed', undefined, { ...failedOf, failedId: dead.failedId })
    assert.deepEqual(
      history.map(({ retryCount }) => retryCount),
      [1, 2, 0, 1, 2, 0],
    )
  })

  test('has succeeded once its consumer says so, also if that comes before the record of the resend', async () => {
    const dead = await failing.exhaust('bad')
    // The claim is made; what follows it is lost.
    store.next('recordFailed', 'lost request')
    assert.deepEqual(outcomes(await resend(service, { of: 'all' })), ['resent'])
    const { place } = await only(service)
    assert.deepEqual(place, dead.place)
    const queues = (await service.call('getTopicView', undefined, { topicName: failName })).queues
    const landed = queues.map(({ queueId, nextOffset }) => ({ queueId, offset: nextOffset - 1 }))
    for (const each of landed) await failing.confirm(each)
    const record = await only(service)
    assert.deepEqual([record.state, record.resends, record.attempts], ['succeeded', 1, 2])
  })

  for (const retryCount of [0, 2]) {
    test(`is handled once and ${retryCount} times more by a Java client, after its delay`, async () => {
      await service.call('subscribe', { retryCount, retryDelaySeconds: 5 }, failedOf)
      await service.call('deRegister', { ...base, id: failing.consumerId })
      const client = await startJavaClient(service, 'a', { fails: () => true })
      await live(service, 3_000)
      await publish(service, ['bad'])
      await live(service, 40_000)
      assert.equal(client.seen.length, 1 + retryCount)
      assert.equal((await only(service)).state, 'exhausted')
      await resend(service, { of: 'all' })
      await live(service, 40_000)
      assert.equal(client.seen.length, 2 * (1 + retryCount))
      assert.deepEqual([(await only(service)).state, (await only(service)).attempts], ['exhausted', client.seen.length])
      client.kill()
    })
  }

  test('goes behind others of its key in the order in which they failed', async () => {
    const msgs = ['a', 'b', 'c'].map((body, i) => ({ id: i + 1, body, key: 'k', retryCount: 2 }))
    for (const message of msgs) {
      service.clock.advance(1)
      await failing.send({ queueId: failing.own.queueId, failMsg: { topicName: failName, msgs: [message] } })
    }
    const { results } = await resend(service, { of: 'all' })
    assert.equal(results.length, 3)
    const places = (await list(service, { order: 'oldest' })).map(({ place }) => place)
    assert.deepEqual(
      places.map(({ offset }) => offset),
      [4, 5, 6],
    )
    assert.equal(new Set(places.map(({ queueId }) => queueId)).size, 1)
  })
})

describe('a resend', () => {
  test('of all, of those that filters fit, of some by name: each only of dead letters, and says what became of each', async () => {
    const [one, two] = [await failing.exhaust('one'), await failing.exhaust('two')]
    await publish(service, ['waits'])
    await failing.fail({ queueId: failing.own.queueId, offset: 3 })
    const [waits] = await list(service, { state: 'retrying' })
    assert.ok(waits)
    const named = await resend(service, { of: { failedIds: [waits.failedId, two.failedId, '1-2-3', two.failedId] } })
    assert.deepEqual(
      new Map(named.results.map(({ failedId, outcome }) => [failedId, outcome])),
      new Map([
        [waits.failedId, 'not_exhausted'],
        ['1-2-3', 'not_found'],
        [two.failedId, 'resent'],
      ] as const),
    )
    assert.equal((await resend(service, { of: { error: 'two' } })).matched, 0)
    assert.deepEqual(await resend(service, { of: { error: 'Error: one', toMs: one.firstFailedAtMs } }), {
      matched: 1,
      results: [{ failedId: one.failedId, outcome: 'resent' }],
    })
    assert.deepEqual(await resend(service, { of: 'all' }), { matched: 0, results: [] })
  })

  test('of many goes on from where it has ended, the oldest first, and a dry run only counts', async () => {
    const msgs = Array.from({ length: 120 }, (_, i) => ({ id: i + 1, body: `b${i}`, retryCount: 2 }))
    await failing.send({ queueId: failing.own.queueId, failMsg: { topicName: failName, msgs } })
    const counted = await resend(service, { of: 'all', dryRun: true, limit: 1 })
    assert.deepEqual(counted, { matched: 120, results: [] })
    assert.equal((await stored()).length, 120)
    const seen: string[] = []
    for (let after: string | undefined; ; ) {
      const { results, next } = await resend(service, { of: 'all', limit: 50, ...(after && { after }) })
      assert.ok(results.every(({ outcome }) => outcome === 'resent'))
      seen.push(...results.map(({ failedId }) => failedId))
      after = next
      if (after === undefined) break
    }
    assert.equal(new Set(seen).size, 120)
    const order = seen.map(id => Number(id.split('-').at(-1)))
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
    )
    assert.equal((await stored()).length, 240)
  })

  test('of several at once is done by one of them', async () => {
    const { failedId } = await failing.exhaust('bad')
    const answers = await Promise.all([1, 2, 3].map(() => resend(service, { of: { failedIds: [failedId] } })))
    assert.deepEqual(answers.flatMap(outcomes).toSorted(), ['changed', 'changed', 'resent'])
    assert.equal((await stored()).filter(([, count]) => count === 0).length, 1)
  })

  test('that died behind its claim leaves a dead letter, which can be resent half a minute later', async () => {
    await failing.exhaust('bad')
    store.next('replaceFailed', 'lost answer')
    assert.deepEqual(outcomes(await resend(service, { of: 'all' })), ['unavailable'])
    assert.deepEqual(
      [(await only(service)).state, outcomes(await resend(service, { of: 'all' }))],
      ['exhausted', ['changed']],
    )
    service.clock.advance(30_000)
    assert.deepEqual(outcomes(await resend(service, { of: 'all' })), ['resent'])
  })

  test('says of what is past retention that it is gone', async () => {
    const { failedId, place } = await failing.exhaust('bad')
    // Trimmed before its time, as by hand.
    store.next('readBatchAt', { answer: undefined })
    const isCached = (await service.core.reader.batchAt(place.queueId, place.offset)) !== undefined
    if (isCached) service.core.reader.batchAt = async () => undefined
    assert.deepEqual(outcomes(await resend(service, { of: { failedIds: [failedId] } })), ['gone'])
  })

  test('is refused where the subscription has ended: nobody would handle it', async () => {
    await failing.exhaust('bad')
    await service.call('unsubscribe', undefined, failedOf)
    const [status, code, text] = await refusal(service, 'resendFailed', { of: 'all' }, failedOf)
    const reason = 'group g1 does not subscribe to topic t1 any more: nobody would handle them'
    assert.deepEqual([status, code, text], [409, 'conflict', reason])
    assert.deepEqual(outcomes(await drop(service, { of: 'all' })), ['dropped'])
  })

  test('goes to its own group, and to no other one that failed with the same message', async () => {
    await createGroup(service, 'g2', ['t1'])
    await failing.exhaust('bad')
    await resend(service, { of: 'all' })
    const { queues } = await service.call('getTopicView', undefined, { topicName: 'g2_t1_fail' })
    assert.ok(queues.every(({ nextOffset }) => nextOffset === 1))
    const { topics, failTopics } = await service.call('listTopics')
    assert.deepEqual([topics, failTopics], [['t1'], ['g1_t1_fail', 'g2_t1_fail']])
    const [status] = await refusal(service, 'resendFailed', { of: 'all' }, { groupName: 'g1', topicName: failName })
    assert.equal(status, 404)
  })

  for (const [request, message] of [
    [{}, 'of: is required'],
    [{ of: {} }, 'of: expected'],
    [{ of: [] }, 'of: expected'],
    [{ of: 'everything' }, 'of: expected'],
    [{ of: { failedIds: [] } }, 'of'],
    [{ of: { failedIds: ['1'] } }, 'of'],
    [{ of: { state: 'retrying' } }, 'of: expected'],
    [{ of: 'all', limit: 501 }, 'limit: expected <=500, not 501'],
  ] as const) {
    test(`is refused as ${JSON.stringify(request)}`, async () => {
      await failing.exhaust('bad')
      for (const endpoint of ['resendFailed', 'dropFailed'] as const) {
        const asked = endpoint === 'dropFailed' ? { ...request, reason: 'r' } : request
        const [status, code, text] = await refusal(service, endpoint, asked, failedOf)
        assert.deepEqual([status, code], [400, 'bad_request'])
        assert.ok(String(text).startsWith(message), String(text))
      }
      assert.equal((await only(service)).state, 'exhausted')
    })
  }
})

describe('a dead letter that is dropped', () => {
  test('stays listed with the reason until its time is over, and is not resent', async () => {
    const dead = await failing.exhaust('bad')
    service.clock.advance(1_000)
    const answer = await drop(service, { of: { failedIds: [dead.failedId] }, reason: 'a test order' })
    assert.deepEqual(answer, { matched: 1, results: [{ failedId: dead.failedId, outcome: 'dropped' }] })
    const dropped = await only(service)
    assert.deepEqual(dropped, {
      ...dead,
      state: 'dropped',
      dropReason: 'a test order',
      settledAtMs: service.clock.now(),
    })
    for (const act of [resend, drop]) {
      assert.deepEqual(outcomes(await act(service, { of: { failedIds: [dead.failedId] } })), ['not_exhausted'])
      assert.equal((await act(service, { of: 'all' })).matched, 0)
    }
    assert.deepEqual(await stored(), [
      ['bad', 1],
      ['bad', 2],
    ])
  })

  test('is found by a filter, and counted by a dry run', async () => {
    await failing.exhaust('one')
    await failing.exhaust('two')
    assert.deepEqual(await drop(service, { of: { error: 'one' }, dryRun: true }), { matched: 1, results: [] })
    assert.equal((await list(service, { state: 'exhausted' })).length, 2)
    assert.deepEqual(outcomes(await drop(service, { of: { error: 'one' } })), ['dropped'])
    assert.equal((await list(service, { state: 'exhausted' }))[0]?.error, 'Error: two')
  })

  for (const reason of [undefined, '', 'x'.repeat(501)]) {
    test(`has a reason, and not one of ${reason?.length ?? 'no'} characters`, async () => {
      const [status] = await refusal(service, 'dropFailed', { of: 'all', reason }, failedOf)
      assert.equal(status, 400)
    })
  }

  test('is not, where somebody is resending it at this moment', async () => {
    const { failedId } = await failing.exhaust('bad')
    const both = await Promise.all([
      resend(service, { of: { failedIds: [failedId] } }),
      drop(service, { of: { failedIds: [failedId] } }),
    ])
    assert.deepEqual(both.flatMap(outcomes), ['resent', 'changed'])
    assert.equal((await only(service)).state, 'retrying')
  })
})

describe("the SDK's consumer", () => {
  test('handles what was resent at once, also where nothing is retried, and confirms it', async () => {
    await service.call('subscribe', { retryCount: 0, retryDelaySeconds: 3_600 }, failedOf)
    await service.call('deRegister', { ...base, id: failing.consumerId })
    const client = openNodeClient(service)
    let isMended = false
    const seen: string[] = []
    const consumer = client.consumer({
      groupName: 'g1',
      topics: {
        t1: messages => {
          seen.push(...messages.map(({ body, retryCount }) => `${body} ${retryCount}`))
          if (!isMended) throw new TypeError('x is not a function')
        },
      },
    })
    await service.pass(consumer.start())
    await publish(service, ['bad'])
    await live(service, 20_000)
    const dead = await only(service)
    assert.deepEqual(
      [seen, dead.state, dead.errorKind, dead.error],
      [['bad 0'], 'exhausted', 'threw', 'TypeError: x is not a function'],
    )
    isMended = true
    await resend(service, { of: 'all' })
    await live(service, 20_000)
    assert.deepEqual(seen, ['bad 0', 'bad 0'])
    assert.deepEqual([(await only(service)).state, (await only(service)).attempts], ['succeeded', 1])
    await service.pass(client.close())
  })
})
