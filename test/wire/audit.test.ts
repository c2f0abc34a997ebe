import assert from 'node:assert/strict'
import { afterEach, beforeEach, mock, suite, test } from 'node:test'
import { recordAct } from '../../core/audit/record-act.ts'
import type { AuditView } from '../../core/protocol/audit.ts'
import { type Endpoint, endpoints } from '../../core/protocol/endpoints.ts'
import { limits } from '../../core/protocol/limits.ts'
import { adminRoutes } from '../../functions/edge/admin-routes.ts'
import { httpHandler } from '../../functions/edge/http.ts'
import { openSqliteStore } from '../../store/sqlite/open.ts'
import { type ScriptedStore, scriptStore } from '../core/scripted-store.ts'
import { openOnEngine } from '../store/open-engine.ts'
import { dynoxide } from '../support/engines.ts'
import { auditSuite, changing, entriesOf } from './audit.ts'
import { consume, createGroup, createTopic, join } from './scene.ts'
import { eventFor, openService, type Service, turn } from './service.ts'

auditSuite('sqlite', {})

const engine = dynoxide()
auditSuite(`dynamo on ${engine.name}`, {
  async openStore() {
    const { store, close } = await openOnEngine(engine)
    return { ...store, close }
  },
  ...(engine.skip !== undefined && { skip: engine.skip }),
})

const dayMs = 86_400_000
const t1 = { topicName: 't1' }

suite('the endpoints of the service', () => {
  test('say what they change, if they are for operators and change something; others do not', () => {
    const audited = Object.entries<Endpoint>(endpoints).filter(([, endpoint]) => endpoint.audits !== undefined)
    assert.deepEqual(
      audited.map(([name]) => name),
      changing,
    )
  })

  test('are not served where nobody records what they change', async () => {
    const service = openService()
    assert.throws(() => httpHandler(service.core, adminRoutes), /nobody records what createTopic does/)
    await service.close()
  })
})

suite('an act of which something fails', () => {
  let service: Service
  let script: ScriptedStore<ReturnType<typeof openSqliteStore>>
  let lines: string[]
  beforeEach(async () => {
    lines = []
    mock.method(console, 'error', (line: string) => lines.push(line))
    script = scriptStore(openSqliteStore(':memory:'))
    service = openService({ store: script.store })
    await createTopic(service, 't1')
  })
  afterEach(async () => {
    mock.restoreAll()
    await service.close()
  })
  const add = () => service.send('addQueues', { count: 1 }, t1)
  const queues = async () => (await script.store.readTopic('t1'))?.queues.length
  const newest = async () => (await entriesOf(service))[0]

  for (const fate of ['lost request', 'lost answer'] as const) {
    test(`is not begun where it could not be recorded: ${fate}`, async () => {
      script.next('addAuditEntry', fate)
      const { status, json } = await add()
      assert.deepEqual([status, json.code], [503, 'unavailable'])
      assert.match(String(json.message), /nothing was done/)
      assert.equal(await queues(), 1)
    })
  }

  test('is not begun where it is not known what was there before', async () => {
    script.next('readTopic', 'lost request')
    assert.equal((await add()).status, 503)
    assert.deepEqual([await queues(), (await entriesOf(service)).length], [1, 1])
  })

  test('is recorded before it is begun', async () => {
    script.calls.length = 0
    await add()
    const order = script.calls.map(call => call.operation).filter(operation => /AuditEntry|addQueues/.test(operation))
    assert.deepEqual(order, ['addAuditEntry', 'addQueues', 'endAuditEntry'])
  })

  test('stays as asked where its process ends before it is done', async () => {
    script.next('addQueues', () => new Promise(() => {}))
    void add()
    await turn()
    const { outcome, endedAtMs, before, after } = (await newest()) ?? {}
    assert.deepEqual([outcome, endedAtMs, after], ['asked', undefined, undefined])
    assert.partialDeepStrictEqual(before, { queues: [{ queueId: 1 }] })
  })

  test('stays as asked where its process ends after it is done', async () => {
    script.next('endAuditEntry', () => new Promise(() => {}))
    void add()
    await turn()
    assert.deepEqual([(await newest())?.outcome, await queues()], ['asked', 2])
  })

  test('is answered as done, and logged, where its entry could not be told how it ended', async () => {
    script.next('endAuditEntry', 'lost request')
    assert.equal((await add()).status, 201)
    assert.equal((await newest())?.outcome, 'asked')
    assert.match(lines.join(), /could not be told how an act ended.*addQueues/)
  })

  test('is recorded as failed, with its code and what is there now', async () => {
    script.next('addQueues', 'lost answer')
    const { status } = await add()
    assert.equal(status, 503)
    const entry = await newest()
    assert.deepEqual([entry?.outcome, entry?.code], ['failed', 'unavailable'])
    assert.partialDeepStrictEqual(entry?.after, { queues: [{ queueId: 1 }, { queueId: 2 }] })
  })

  test('is recorded as failed where the fault is ours, without what it was', async () => {
    script.next('addQueues', () => {
      throw new TypeError('a defect')
    })
    assert.equal((await add()).status, 500)
    const entry = await newest()
    assert.deepEqual([entry?.outcome, entry?.code], ['failed', 'internal'])
    assert.doesNotMatch(JSON.stringify(entry), /defect/)
  })
})

suite('an entry of the audit log', () => {
  let service: Service
  beforeEach(() => {
    service = openService()
  })
  afterEach(() => service.close())

  test('names whom IAM has found, and from where', async () => {
    const userArn = 'arn:aws:sts::123456789012:assumed-role/operator/ann'
    const event = eventFor(endpoints.createGroup, '{"name":"g1"}')
    const iam = { accessKey: 'ASIA', accountId: '123456789012', callerId: 'AROA:ann', userArn, userId: 'AROA:ann' }
    const requestContext = { ...event.requestContext, accountId: '123456789012', authorizer: { iam } }
    await service.invoke('admin', { ...event, requestContext })
    const [entry] = await entriesOf(service, { who: userArn })
    assert.deepEqual([entry?.who, entry?.ip, entry?.entity], [userArn, '10.0.0.7', 'group:g1'])
    assert.doesNotMatch(JSON.stringify(entry), /ASIA/)
  })

  test('does not take for this machine who is not known', async () => {
    const event = eventFor(endpoints.createGroup, '{"name":"g1"}')
    await service.invoke('admin', { ...event, requestContext: { ...event.requestContext, accountId: '123456789012' } })
    assert.equal((await entriesOf(service))[0]?.who, 'unknown')
  })

  test('is not made of a request that only asks what would happen', async () => {
    await consume(service)
    const before = (await entriesOf(service)).length
    await service.call('resetOffsets', { of: 'all', to: 'end', dryRun: true }, { groupName: 'g1' })
    assert.equal((await entriesOf(service)).length, before)
  })

  test('is not made of a request that is not understood', async () => {
    await service.send('createTopic', { name: 't1', queues: 0 })
    assert.deepEqual(await entriesOf(service), [])
  })

  test('has the places of each member of a broadcast group', async () => {
    await createTopic(service, 't1')
    await service.call('createGroup', { name: 'g1', mode: 'broadcast' })
    await service.call('subscribe', {}, { groupName: 'g1', topicName: 't1' })
    const id = await join(service, 'g1', ['t1'])
    await service.call('stopQueues', { of: 'all' }, { groupName: 'g1' })
    assert.partialDeepStrictEqual((await entriesOf(service))[0]?.after, {
      offsets: [{ groupName: `g1~${id}`, topicName: 't1', queues: { 1: { isStopped: true } } }],
    })
  })

  test('shows what is called as a secret would be', async () => {
    await createTopic(service, 'token')
    await createGroup(service, 'secrets', ['token'])
    await service.call('unsubscribe', undefined, { groupName: 'secrets', topicName: 'token' })
    const [entry] = await entriesOf(service, { entity: 'group:secrets' })
    assert.partialDeepStrictEqual(entry?.before, {
      subscription: { topicName: 'token' },
      offsets: [{ topicName: 'token', queues: { 1: { offset: 0 } } }, {}],
    })
  })

  test('has a name of bounded length, whatever the path holds', async () => {
    for (const groupName of ['x'.repeat(9_000), 'a\ud800']) {
      const { status } = await service.send('removeGroup', undefined, { groupName })
      assert.equal(status, 404)
    }
    const [strange, long] = await entriesOf(service)
    assert.deepEqual([strange?.entity, long?.entity], ['group:a\ufffd', `group:${'x'.repeat(limits.maxAnyNameLength)}`])
  })

  test('is cut where a group is too large for it, and says so', async () => {
    const topicNames = Array.from({ length: 3 }, (_, i) => `t${i}`)
    for (const topicName of topicNames) await createTopic(service, topicName, 1000)
    await createGroup(service, 'g1', topicNames)
    await service.call('stopQueues', { of: 'all' }, { groupName: 'g1' })
    const [entry] = await entriesOf(service)
    const { cutFromBytes, text } = (entry?.after ?? {}) as { cutFromBytes: number; text: string }
    assert.ok(cutFromBytes > limits.maxAuditTextBytes)
    assert.ok(text.startsWith('{"offsets":[{"topicName":"t0","queues":{"1":{"offset":0'))
    assert.ok(Buffer.byteLength(JSON.stringify(entry?.after)) <= limits.maxAuditTextBytes)
  })
})

suite('the list of the audit log', () => {
  let service: Service
  beforeEach(() => {
    service = openService()
  })
  afterEach(() => service.close())

  /** Acts on these days from now on; answers with the entities, newest first. */
  async function actOn(days: number[]): Promise<string[]> {
    const startMs = service.clock.now()
    for (const day of days) {
      service.clock.advance(startMs + day * dayMs - service.clock.now())
      await service.call('createGroup', { name: `day-${day}` })
    }
    return days.map(day => `group:day-${day}`).reverse()
  }

  async function readAll(query: object): Promise<{ entities: string[]; requests: number }> {
    const entities: string[] = []
    let requests = 0
    for (let after: string | undefined; ; ) {
      const page: AuditView = await service.call('listAudit', { ...query, ...(after && { after }) })
      entities.push(...page.entries.map(({ entity }) => entity))
      requests++
      after = page.next
      if (after === undefined) return { entities, requests }
      assert.ok(requests < 100)
    }
  }

  test('goes from month to month, the newest first, page by page', async () => {
    // From the first of January: also at the very beginning of months, and over months without any act.
    service.clock.advance(Date.UTC(2025, 0, 1) - service.clock.now())
    const entities = await actOn([0, 0.5, 30, 31, 31.25, 59, 90, 200, 365])
    for (const limit of [1, 2, 3, 100]) assert.deepEqual((await readAll({ limit })).entities, entities)
  })

  test('finds acts from a time on and before another', async () => {
    const startMs = service.clock.now()
    const entities = await actOn([0, 10, 40, 80, 120])
    const between = { fromMs: startMs + 10 * dayMs, toMs: startMs + 80 * dayMs }
    assert.deepEqual((await readAll({ ...between, limit: 1 })).entities, entities.slice(2, 4))
    assert.deepEqual((await readAll({ fromMs: startMs + 121 * dayMs })).entities, [])
    assert.deepEqual((await readAll({ toMs: startMs })).entities, [])
  })

  test('finds acts on one thing, of one kind, of one caller', async () => {
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    await createGroup(service, 'g2', ['t1'])
    const acts = async (query: object) => (await entriesOf(service, query)).map(({ act }) => act)
    assert.deepEqual(await acts({ entity: 'group:g1' }), ['subscribe', 'createGroup'])
    assert.deepEqual(await acts({ act: 'subscribe' }), ['subscribe', 'subscribe'])
    assert.deepEqual(await acts({ entity: 'group:g2', act: 'createGroup', who: 'local' }), ['createGroup'])
    assert.deepEqual(await acts({ who: 'somebody' }), [])
  })

  test('forgets what is older than 400 days, whether it is deleted yet or not', async () => {
    const [, kept] = await actOn([0, 0.5, 400.25])
    assert.deepEqual((await readAll({})).entities, ['group:day-400.25', kept])
    service.clock.advance(dayMs)
    assert.deepEqual((await readAll({ fromMs: 0 })).entities, ['group:day-400.25'])
  })

  test('reads a bounded number of entries for one answer, and says where it stopped', async () => {
    const act = { name: 'createGroup', audits: 'group', parameters: {}, caller: { who: 'local', ip: '' } } as const
    for (let i = 0; i < 2_100; i++) {
      await recordAct(
        service.core,
        { ...act, request: { name: i === 0 ? 'first' : 'other' } },
        async () => {},
        assert.fail,
      )
    }
    const first = await service.call('listAudit', { entity: 'group:first' })
    assert.deepEqual(first.entries, [])
    assert.ok(first.next)
    assert.deepEqual(await readAll({ entity: 'group:first' }), { entities: ['group:first'], requests: 2 })
  })

  test('stays below what an answer may be, however large the entries are', async () => {
    const act = { name: 'stopQueues', audits: 'group', parameters: {}, caller: { who: 'local', ip: '' } } as const
    const request = { name: 'g1', filler: '"'.repeat(1_000_000) }
    for (let i = 0; i < 100; i++) await recordAct(service.core, { ...act, request }, async () => {}, assert.fail)
    // The service's own double checks the size of each answer.
    assert.equal((await readAll({ limit: 100 })).entities.length, 100)
  })

  test('refuses what it does not understand', async () => {
    for (const [query, message] of [
      [{ limit: 101 }, 'limit: expected <=100, not 101'],
      [{ after: 'x' }, 'after: must be what an answer named as next'],
      [{ fromMs: 'yesterday' }, 'fromMs: expected number'],
      [{ entities: 'group:g1' }, 'entities: no such field'],
    ] as const) {
      const { status, json } = await service.send('listAudit', query)
      assert.deepEqual([status, json.message], [400, message])
    }
  })
})
