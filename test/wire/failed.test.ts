import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { StoreError } from '../../core/store.ts'
import { openSqliteStore } from '../../store/sqlite/open.ts'
import { scriptStore } from '../core/scripted-store.ts'
import { type Failing, failedOf, failName, list, only, startFailing } from './failing.ts'
import { live, startJavaClient } from './java-client.ts'
import { refusal } from './operator.ts'
import { base, createGroup, createTopic, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

const scripted = () => scriptStore(openSqliteStore(':memory:'))

describe('a message that a group fails to handle', () => {
  let service: Service
  let failing: Failing
  let store: ReturnType<typeof scripted>
  beforeEach(async () => {
    store = scripted()
    service = openService({ store: store.store })
    failing = await startFailing(service)
  })
  afterEach(() => service.close())

  const retries = (retryCount: number) => service.call('subscribe', { retryCount }, failedOf)

  test('is listed with where it failed, how, when, and where it waits to be handled again', async () => {
    await publish(service, ['fine', 'bad'])
    const failedAtMs = service.clock.now()
    const place = { queueId: failing.own.queueId, offset: 2 }
    await failing.fail(place, { cause: { kind: 'threw', text: 'Error: it broke' } })
    const record = await only(service)
    assert.deepEqual(record, {
      failedId: `${failedAtMs}-${record.place.queueId}-1`,
      state: 'retrying',
      place: { queueId: record.place.queueId, offset: 1 },
      origin: place,
      attempts: 1,
      retryCount: 1,
      resends: 0,
      errorKind: 'threw',
      error: 'Error: it broke',
      firstFailedAtMs: failedAtMs,
      lastFailedAtMs: failedAtMs,
      endsAtMs: failedAtMs + 14 * 86_400_000,
    })
    assert.ok(failing.failQueues.some(({ queueId }) => queueId === record.place.queueId))
  })

  test('stays one record while it is retried, and becomes a dead letter with its last failure', async () => {
    await retries(2)
    await publish(service, ['bad'])
    const origin = { queueId: failing.own.queueId, offset: 1 }
    await failing.fail(origin)
    const first = await only(service)
    for (const [attempts, state] of [
      [2, 'retrying'],
      [3, 'exhausted'],
    ] as const) {
      service.clock.advance(60_000)
      const former = await only(service)
      await failing.fail(former.place, { cause: { text: `no. ${attempts}` } })
      const record = await only(service)
      assert.deepEqual(
        [record.failedId, record.origin, record.state, record.attempts, record.retryCount, record.error],
        [first.failedId, origin, state, attempts, attempts, `no. ${attempts}`],
      )
      assert.notDeepEqual(record.place, former.place)
      assert.deepEqual([record.firstFailedAtMs, record.lastFailedAtMs], [first.firstFailedAtMs, service.clock.now()])
      assert.equal(record.endsAtMs, service.clock.now() + 14 * 86_400_000)
    }
  })

  test('is a dead letter at once where nothing is retried', async () => {
    await retries(0)
    await publish(service, ['bad'])
    await failing.fail({ queueId: failing.own.queueId, offset: 1 })
    assert.equal((await only(service)).state, 'exhausted')
  })

  test('has succeeded when its consumer confirms it, with how it had failed', async () => {
    await publish(service, ['bad'])
    await failing.fail({ queueId: failing.own.queueId, offset: 1 }, { cause: { kind: 'timed_out', text: 'late' } })
    const before = await only(service)
    service.clock.advance(60_000)
    for (const _ of [1, 2]) assert.equal((await failing.confirm(before.place)).suc, true)
    assert.deepEqual(await only(service), { ...before, state: 'succeeded', settledAtMs: service.clock.now() })
  })

  test('that is confirmed before its failure is recorded has succeeded', async () => {
    await publish(service, ['bad'])
    store.next('recordFailed', 'lost request')
    const { suc } = await failing.fail({ queueId: failing.own.queueId, offset: 1 })
    assert.deepEqual([suc, await list(service)], [false, []])
    const place = { queueId: failing.failQueues[0]?.queueId ?? 0, offset: 1 }
    const isThere = (await service.core.reader.batchAt(place.queueId, 1)) !== undefined
    const landed = isThere ? place : { queueId: failing.failQueues[1]?.queueId ?? 0, offset: 1 }
    assert.equal((await failing.confirm(landed)).suc, true)
    const record = await only(service)
    assert.deepEqual([record.state, record.attempts, record.origin?.offset], ['succeeded', 1, 1])
  })

  test('is not acknowledged before it is recorded, and the same request again records it, once', async () => {
    await publish(service, ['bad'])
    const failMsg = { topicName: failName, msgs: [{ id: 1, body: 'bad', retryCount: 1 }], publishId: 'p-1' }
    const attempt = (n: number) =>
      failing.send({ ...failing.named(failing.own), failMsg: { ...failMsg, attempt: n, attemptAgeMs: n } })
    store.next('recordFailed', 'lost request', 'lost answer')
    for (const n of [1, 2]) assert.deepEqual((await attempt(n)).suc, false)
    for (const n of [3, 4]) assert.deepEqual((await attempt(n)).suc, true)
    const record = await only(service)
    assert.deepEqual([record.retryCount, record.place.offset, record.attempts], [1, 1, 1])
    const { queues } = await service.call('getTopicView', undefined, { topicName: failName })
    assert.deepEqual(queues.map(({ nextOffset }) => nextOffset).toSorted(), [1, 2])
  })

  test('is not confirmed before that is recorded', async () => {
    await publish(service, ['bad'])
    await failing.fail({ queueId: failing.own.queueId, offset: 1 })
    const { place } = await only(service)
    store.next('recordFailed', () => {
      throw new StoreError('throttled', 'slower')
    })
    assert.equal((await failing.confirm(place)).suc, false)
    assert.equal((await only(service)).state, 'retrying')
    assert.equal((await failing.confirm(place)).suc, true)
    assert.equal((await only(service)).state, 'succeeded')
  })

  test('is not turned back by a repeat that comes late', async () => {
    await publish(service, ['bad'])
    const origin = { queueId: failing.own.queueId, offset: 1 }
    const failMsg = { topicName: failName, msgs: [{ id: 1, body: 'bad', retryCount: 1 }], publishId: 'p-1' }
    const first = (n: number) =>
      failing.send({ ...failing.named(failing.own), failMsg: { ...failMsg, attempt: n, attemptAgeMs: n } })
    await first(1)
    const before = await only(service)
    await failing.fail(before.place)
    await first(2)
    await failing.confirm(before.place)
    const record = await only(service)
    assert.deepEqual([record.state, record.retryCount, record.origin], ['retrying', 2, origin])
  })

  test('is as good as dead where its group has gone past it without a word', async () => {
    await publish(service, ['bad', 'bad too'])
    const origin = failing.own.queueId
    await failing.fail({ queueId: origin, offset: 1 })
    const { place } = await only(service)
    assert.equal((await only(service)).state, 'retrying')
    await failing.commit(place)
    assert.equal((await only(service)).state, 'exhausted')
    assert.deepEqual(await list(service, { state: 'retrying' }), [])
    assert.equal((await list(service, { state: 'exhausted' })).length, 1)
  })

  test('is as good as dead when its subscription has ended, and stays listed until its time is over', async () => {
    await publish(service, ['bad'])
    await failing.fail({ queueId: failing.own.queueId, offset: 1 })
    await service.call('unsubscribe', undefined, failedOf)
    const { state, endsAtMs } = await only(service)
    assert.equal(state, 'exhausted')
    service.clock.advance(endsAtMs - service.clock.now() - 1)
    assert.equal((await list(service)).length, 1)
    service.clock.advance(1)
    assert.deepEqual(await list(service), [])
  })

  test('of a client that does not say where it was is known by where it has landed', async () => {
    const failMsg = { topicName: failName, msgs: [{ body: 'bad', retryCount: 1 }] }
    assert.equal((await failing.send({ queueId: failing.own.queueId, failMsg })).suc, true)
    const record = await only(service)
    assert.equal(record.origin, undefined)
    await failing.fail(record.place)
    const again = await only(service)
    assert.deepEqual([again.failedId, again.attempts, again.origin], [record.failedId, 2, undefined])
  })

  test('by a thousand in one request is a thousand records', async () => {
    const msgs = Array.from({ length: 1_000 }, (_, i) => ({ id: i + 1, body: `b${i}`, retryCount: 1, bizId: `${i}` }))
    const queueId = failing.own.queueId
    assert.equal((await failing.send({ queueId, failMsg: { topicName: failName, msgs } })).suc, true)
    const { counts } = await service.call('listFailed', { counts: true }, failedOf)
    assert.deepEqual(counts, { retrying: 1_000, exhausted: 0, succeeded: 0, dropped: 0, isPartial: false })
    const seen = new Set<number>()
    for (let after: string | undefined; ; ) {
      const page = await service.call('listFailed', { limit: 100, ...(after && { after }) }, failedOf)
      for (const { origin } of page.failed) seen.add(origin?.offset ?? 0)
      after = page.next
      if (after === undefined) break
    }
    assert.equal(seen.size, 1_000)
  })

  test('tells its consumer nothing of what the service notes of it, but in a field that is ignored', async () => {
    await publish(service, ['bad'])
    await failing.fail({ queueId: failing.own.queueId, offset: 1 })
    const { place } = await only(service)
    const asked = { ...base, queueId: place.queueId, offsetStart: 0, topicName: failName, consumerGroupName: 'g1' }
    const { msgs } = await service.call('pullData', { ...asked, offsetEnd: 10 })
    assert.deepEqual(Object.keys(msgs?.[0] ?? {}).toSorted(), [
      'bizId',
      'body',
      'id',
      'retryCount',
      'sendIp',
      'sendTime',
      'tag',
      'traceId',
    ])
    const { batches } = await service.call('pullData', { ...asked, maxBytes: 10_000 })
    assert.deepEqual(batches?.[0]?.msgs[0]?.failed, { of: ['g1', 't1'], from: [failing.own.queueId, 1] })
  })

  test('cannot be made up: what a client says of its past is not taken', async () => {
    const failed = { of: ['g2', 't2'], first: [1, 2, 3], resent: [9, 9, 9, 9] }
    const msgs = [{ id: 1, body: 'bad', retryCount: 1, failed }]
    await failing.send({ queueId: failing.own.queueId, failMsg: { topicName: failName, msgs } })
    const record = await only(service)
    assert.deepEqual([record.resends, record.attempts, record.origin?.offset], [0, 1, 1])
  })

  test('keeps the beginning of a long error, and of one that is no Unicode what is', async () => {
    await publish(service, ['bad'])
    const text = `\ud800${'x'.repeat(5_000)}`
    const cause = { kind: 'k'.repeat(100), text }
    await failing.fail({ queueId: failing.own.queueId, offset: 1 }, { cause })
    const { error, errorKind } = await only(service)
    assert.deepEqual([error, errorKind], [`\ufffd${'x'.repeat(999)}`, 'k'.repeat(30)])
  })

  test('costs two writes and what it takes to know its owner; one that succeeds costs one', async () => {
    await publish(service, ['bad'])
    const operations = () => store.calls.splice(0).map(({ operation }) => operation)
    operations()
    const failMsg = { topicName: failName, msgs: [{ id: 1, body: 'bad', retryCount: 1 }] }
    await failing.send({ ...failing.named(failing.own), failMsg })
    const first = operations().filter(operation => !['readHeaders', 'readTopic'].includes(operation))
    assert.deepEqual(first, ['readQueueOffset', 'appendBatch', 'readSubscriptions', 'recordFailed'])
    const { place } = await only(service)
    operations()
    await failing.confirm(place)
    assert.deepEqual(operations(), ['readQueueOffset', 'recordFailed'])
  })
})

describe('what a consumer confirms', () => {
  let service: Service
  let failing: Failing
  beforeEach(async () => {
    service = openService()
    failing = await startFailing(service)
    await publish(service, ['bad'])
    await failing.fail({ queueId: failing.own.queueId, offset: 1 })
  })
  afterEach(() => service.close())

  test('of a queue that it has lost is refused as fenced', async () => {
    const { place } = await only(service)
    await service.call('resetOffsets', { of: { queueId: place.queueId }, to: 'start' }, { groupName: 'g1' })
    const answer = await failing.confirm(place)
    assert.deepEqual([answer.suc, answer.fenced], [false, true])
    assert.equal((await only(service)).state, 'retrying')
  })

  test('of a queue that its place is not of is refused', async () => {
    const { place } = await only(service)
    const named = failing.named(failing.own)
    const answer = await failing.send({ ...named, queueId: place.queueId, ids: [place.offset] })
    assert.deepEqual([answer.suc, answer.msg], [false, `queueId_${place.queueId} is not of this place`])
    assert.equal((await only(service)).state, 'retrying')
  })

  test('of a queue of a topic, or of what is not there, changes nothing', async () => {
    const { place } = await only(service)
    for (const fields of [
      { queueId: failing.own.queueId, ids: [1] },
      { queueId: place.queueId, ids: [2, 3, 4711] },
      { queueId: 4711, ids: [1] },
      { queueId: place.queueId, ids: [] },
      { queueId: null, ids: [1] },
    ]) {
      assert.equal((await failing.send(fields)).suc, true)
    }
    assert.equal((await only(service)).state, 'retrying')
  })
})

describe('the list of what failed', () => {
  let service: Service
  let failing: Failing
  beforeEach(async () => {
    service = openService()
    failing = await startFailing(service)
  })
  afterEach(() => service.close())

  test('is found by state, by bizId, by a part of the error and by time, the newest or the oldest first', async () => {
    await service.call('subscribe', { retryCount: 0 }, failedOf)
    const times: number[] = []
    for (const [i, [bizId, text]] of [
      ['order-1', 'Error: no connection to db-1'],
      ['order-2', 'Error: no connection to db-2'],
      ['order-1', 'TypeError: x is not a function'],
    ].entries()) {
      service.clock.advance(1_000)
      times.push(service.clock.now())
      const msgs = [{ id: i + 1, body: 'bad', retryCount: 1, bizId: String(bizId) }]
      const cause = { kind: 'threw', text: String(text) }
      await failing.send({ queueId: failing.own.queueId, failMsg: { topicName: failName, msgs }, cause })
    }
    const found = async (query: object) => (await list(service, query)).map(({ origin }) => origin?.offset)
    assert.deepEqual(await found({}), [3, 2, 1])
    assert.deepEqual(await found({ order: 'oldest' }), [1, 2, 3])
    assert.deepEqual(await found({ bizId: 'order-1' }), [3, 1])
    assert.deepEqual(await found({ error: 'connection to db' }), [2, 1])
    assert.deepEqual(await found({ error: 'db-1', bizId: 'order-2' }), [])
    assert.deepEqual(await found({ state: 'exhausted', limit: 2 }), [3, 2])
    assert.deepEqual(await found({ state: 'retrying' }), [])
    assert.deepEqual(await found({ fromMs: times[1] ?? 0 }), [3, 2])
    assert.deepEqual(await found({ fromMs: times[1] ?? 0, toMs: times[1] ?? 0 }), [2])
    assert.deepEqual(await found({ toMs: (times[0] ?? 0) - 1 }), [])
    assert.deepEqual(await found({ fromMs: times[2] ?? 0, toMs: times[0] ?? 0 }), [])
    const { next, failed } = await service.call('listFailed', { limit: 1 }, failedOf)
    assert.deepEqual([failed[0]?.origin?.offset, next], [3, failed[0]?.failedId])
    assert.deepEqual(await found({ after: next }), [2, 1])
    assert.deepEqual(await found({ after: next, toMs: times[0] ?? 0 }), [1])
    assert.deepEqual(await found({ after: next, order: 'oldest' }), [])
    assert.deepEqual(await found({ after: next, order: 'oldest', fromMs: times[0] ?? 0 }), [])
  })

  test('looks at a thousand records in one go, however few of them are found', async () => {
    const msgs = Array.from({ length: 1_000 }, (_, i) => ({ id: i + 1, body: 'bad', retryCount: 1, bizId: 'many' }))
    const first = [{ id: 4711, body: 'bad', retryCount: 1, bizId: 'one' }]
    for (const list of [first, msgs]) {
      await failing.send({ queueId: failing.own.queueId, failMsg: { topicName: failName, msgs: list } })
      service.clock.advance(1)
    }
    const { failed, next, counts } = await service.call('listFailed', { bizId: 'one', counts: true }, failedOf)
    assert.deepEqual([failed, counts?.isPartial], [[], true])
    assert.ok(next)
    const more = await service.call('listFailed', { bizId: 'one', after: next }, failedOf)
    assert.deepEqual([more.failed.map(({ origin }) => origin?.offset), more.next], [[4711], undefined])
  })

  for (const [query, message] of [
    [{ state: 'lost' }, 'state: expected'],
    [{ limit: 101 }, 'limit: expected <=100, not 101'],
    [{ after: '1-2' }, 'after: must be the failedId of a failed message'],
    [{ after: '1234567890123456-1-1' }, 'after: must be the failedId of a failed message'],
    [{ fromMs: -1 }, 'fromMs: expected >=0, not -1'],
    [{ states: 'x' }, 'states: no such field'],
  ] as const) {
    test(`is not given for ${JSON.stringify(query)}: ${message}`, async () => {
      const [status, code, text] = await refusal(service, 'listFailed', query, failedOf)
      assert.deepEqual([status, code], [400, 'bad_request'])
      assert.ok(String(text).startsWith(message), String(text))
    })
  }

  test('is there for a subscription that has a fail topic, and for no other', async () => {
    await createTopic(service, 't2')
    await service.call('createGroup', { name: 'everywhere', mode: 'broadcast' })
    await service.call('subscribe', {}, { groupName: 'everywhere', topicName: 't1' })
    for (const [groupName, topicName] of [
      ['g1', 't2'],
      ['g2', 't1'],
      ['everywhere', 't1'],
      ['g1', failName],
      ['no name', 't1'],
    ]) {
      const names = { groupName: groupName ?? '', topicName: topicName ?? '' }
      const [status, , text] = await refusal(service, 'listFailed', undefined, names)
      assert.deepEqual([status, text], [404, `group ${groupName} has no fail topic for topic ${topicName}`])
    }
  })
})

describe('one failed message', () => {
  let service: Service
  let failing: Failing
  beforeEach(async () => {
    service = openService()
    failing = await startFailing(service)
  })
  afterEach(() => service.close())

  const get = (failedId: string) => service.call('getFailed', undefined, { ...failedOf, failedId })

  test('is shown with all that it has, and its way through the fail topic', async () => {
    const message = { body: 'bad', tag: 't', bizId: 'b', head: { k: 'v' }, key: 'k', traceId: 'x' }
    const send = (fields: object, retryCount: number, id: number) =>
      failing.send({ ...fields, failMsg: { topicName: failName, msgs: [{ ...message, id, retryCount }] } })
    await send({ queueId: failing.own.queueId }, 1, 7)
    const first = await only(service)
    service.clock.advance(60_000)
    await send({ queueId: first.place.queueId }, 2, first.place.offset)
    const second = await only(service)
    const detail = await get(first.failedId)
    assert.deepEqual(detail, {
      ...second,
      message: { ...message, sendIp: base.clientIp },
      history: [
        { ...first.place, retryCount: 1, atMs: first.firstFailedAtMs },
        { ...second.place, retryCount: 2, atMs: service.clock.now() },
      ],
    })
  })

  for (const failedId of ['1-2-3', 'nonsense', '..', '9999999999999999-1-1']) {
    test(`is not found as ${failedId}`, async () => {
      const [status, code] = await refusal(service, 'getFailed', undefined, { ...failedOf, failedId })
      assert.deepEqual([status, code], [404, 'not_found'])
    })
  }
})

describe("what PMQ's Java client does", () => {
  test('is recorded: it retries, succeeds or gives up, and nothing of it makes a fail topic of a fail topic', async () => {
    const service = openService({ settings: { pollHoldMs: 500 } })
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    await service.call('subscribe', { retryCount: 2, retryDelaySeconds: 5 }, failedOf)
    let left = 2
    const fails = (body: string) => body === 'bad' || (body === 'flaky' && left-- > 0)
    const client = await startJavaClient(service, 'a', { fails })
    await live(service, 3_000)
    await publish(service, ['good', 'bad', 'flaky'])
    await live(service, 60_000)
    const records = (await list(service)).map(({ state, attempts, origin }) => [origin?.offset, state, attempts])
    assert.deepEqual(records.toSorted(), [
      [2, 'exhausted', 3],
      [3, 'succeeded', 2],
    ])
    const { topics, failTopics } = await service.call('listTopics')
    assert.deepEqual([topics, failTopics], [['t1'], [failName]])
    client.kill()
    await service.close()
  })
})
