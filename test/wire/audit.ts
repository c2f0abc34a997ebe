import assert from 'node:assert/strict'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { defaultSubscription } from '../../core/admin/subscriptions.ts'
import type { AuditEntryView } from '../../core/protocol/audit.ts'
import { type Endpoint, type EndpointName, endpoints } from '../../core/protocol/endpoints.ts'
import type { Store } from '../../core/store.ts'
import { consume, createTopic, publish } from './scene.ts'
import { openService, type Parameters, type Service } from './service.ts'

/** What operators do leaves one entry each in the audit log, with what was there before and after. */
export type AuditOptions = { openStore?: () => Promise<Store>; skip?: string }

export const entriesOf = async (service: Service, query: object = {}): Promise<AuditEntryView[]> =>
  (await service.call('listAudit', query)).entries

export const changing = (Object.keys(endpoints) as EndpointName[]).filter(
  name => endpoints[name].function === 'admin' && endpoints[name].method !== 'GET',
)

const t1 = { topicName: 't1' }
const g1 = { groupName: 'g1' }
const all = { of: 'all' }
const settings = { mode: 'balanced', allowedIps: [], deniedIps: [], maxConsumers: 0 }
const writable = [{ queueId: 1 }, { queueId: 2 }]
const places = (change: object = {}) => [
  {
    topicName: 't1',
    queues: { 1: { offset: 0, offsetVersion: 1, ...change }, 2: { offset: 0, offsetVersion: 1, ...change } },
  },
]
const placesOfFailures = (change: object = {}) => [
  {
    topicName: 'g1_t1_fail',
    queues: { 3: { offset: 0, offsetVersion: 1, ...change }, 4: { offset: 0, offsetVersion: 1, ...change } },
  },
]

type Row = {
  act: EndpointName
  request?: object
  parameters?: Parameters
  /** Where it is not on what `consume` has made. */
  prepare?: (service: Service) => Promise<unknown>
  entity: string
  /** These fields of it; null: there was nothing. */
  before: object | null
  after: object | null
}

const failOne = async (service: Service) => {
  const [queueId = 0] = (await service.call('getTopicQueueIds', { topicNames: ['t1'] })).topicQueues?.t1 ?? []
  const failMsg = { topicName: 'g1_t1_fail', msgs: [{ id: 1, body: 'm', retryCount: 4 }] }
  await publish(service, ['m'], queueId)
  await service.call('publishAndUpdateResultFailMsg', { queueId, failMsg })
}
const failedOf = (counts: object) => ({
  topicName: 't1',
  failed: { retrying: 0, exhausted: 0, succeeded: 0, dropped: 0, isPartial: false, ...counts },
})

const makeReadOnly = async (service: Service) => {
  await service.call('changeQueue', { readOnly: true }, { ...t1, queueId: '2' })
  service.clock.advance(60_000)
}

const hook = { targetName: 'hook' }
const url = 'https://example.com/hook'
const makeHook = (service: Service) => service.call('putTarget', { url }, { ...g1, ...hook })
const makeAlarmHook = (service: Service) => service.call('putAlarmTarget', { url }, hook)
const status = (status: string, more: object = {}) => ({ state: { status, failures: 0, ...more } })
const disabledByOperator = status('disabled', {
  disabledBy: 'operator',
  disabledAtMs: Date.UTC(2024, 0, 1, 12, 30, 15, 7),
})
const ofGroup = { parameters: { ...g1, ...hook }, entity: 'group:g1' }
const ofAlarms = { parameters: hook, entity: 'target:hook' }
/** Each that there is for targets of groups there is for targets of alarms. */
const targetRows: Row[] = (
  [
    ['', makeHook, ofGroup],
    ['Alarm', makeAlarmHook, ofAlarms],
  ] as const
).flatMap(([of, prepare, about]): Row[] => [
  { act: `put${of}Target`, request: { url }, ...about, before: null, after: { name: 'hook', url } },
  { act: `put${of}Target`, request: { url }, ...about, prepare, before: { url }, after: { url } },
  { act: `remove${of}Target`, ...about, prepare, before: { name: 'hook', url }, after: null },
  { act: `disable${of}Target`, ...about, prepare, before: status('active'), after: disabledByOperator },
  {
    act: `enable${of}Target`,
    ...about,
    async prepare(service) {
      await prepare(service)
      if (of) await service.call('disableAlarmTarget', undefined, hook)
      else await service.call('disableTarget', undefined, { ...g1, ...hook })
    },
    before: disabledByOperator,
    after: status('active'),
  },
  { act: `add${of}TargetSecret`, request: {}, ...about, prepare, before: { url }, after: { url } },
  {
    act: `remove${of}TargetSecret`,
    ...about,
    parameters: { ...about.parameters, secretId: 'id-5' },
    async prepare(service) {
      const [secret] = (await prepare(service)).secrets
      assert.equal(secret?.secretId, 'id-5')
      const target = { ...about.parameters, ...hook }
      await (of ? service.call('addAlarmTargetSecret', {}, hook) : service.call('addTargetSecret', {}, target))
    },
    before: { url },
    after: { url },
  },
  { act: `test${of}Target`, ...about, prepare, before: { url }, after: { url } },
])

const rows: Row[] = [
  ...targetRows,
  {
    act: 'resendFailed',
    request: { of: 'all' },
    parameters: { ...g1, ...t1 },
    prepare: failOne,
    entity: 'group:g1',
    before: failedOf({ exhausted: 1 }),
    after: failedOf({ retrying: 1 }),
  },
  {
    act: 'dropFailed',
    request: { of: 'all', reason: 'nobody wants it' },
    parameters: { ...g1, ...t1 },
    prepare: failOne,
    entity: 'group:g1',
    before: failedOf({ exhausted: 1 }),
    after: failedOf({ dropped: 1 }),
  },
  {
    act: 'createTopic',
    request: { name: 't2', queues: 1 },
    entity: 'topic:t2',
    before: null,
    after: { name: 't2', retentionMs: 604_800_000, queues: [{ queueId: 5 }], groups: [] },
  },
  {
    act: 'updateTopic',
    request: { maxLag: 9 },
    parameters: t1,
    entity: 'topic:t1',
    before: { queues: writable },
    after: { queues: writable, maxLag: 9 },
  },
  {
    act: 'addQueues',
    request: { count: 1 },
    parameters: t1,
    entity: 'topic:t1',
    before: { queues: writable, groups: ['g1'] },
    after: { queues: [...writable, { queueId: 5 }] },
  },
  {
    act: 'changeQueue',
    request: { readOnly: true },
    parameters: { ...t1, queueId: '2' },
    entity: 'topic:t1',
    before: { queues: writable },
    after: { queues: [{ queueId: 1 }, { queueId: 2, readOnlySinceMs: Date.UTC(2024, 0, 1, 12, 30, 15, 7) }] },
  },
  {
    act: 'removeQueue',
    parameters: { ...t1, queueId: '2' },
    prepare: makeReadOnly,
    entity: 'topic:t1',
    before: { queues: [{ queueId: 1 }, { queueId: 2, readOnlySinceMs: Date.UTC(2024, 0, 1, 12, 30, 15, 7) }] },
    after: { queues: [{ queueId: 1 }] },
  },
  {
    act: 'removeTopic',
    parameters: { topicName: 't2' },
    prepare: service => createTopic(service, 't2'),
    entity: 'topic:t2',
    before: { name: 't2', queues: [{ queueId: 5 }], groups: [] },
    after: null,
  },
  {
    act: 'createGroup',
    request: { name: 'g2', maxConsumers: 3 },
    entity: 'group:g2',
    before: null,
    after: { ...settings, maxConsumers: 3, subscriptions: [] },
  },
  {
    act: 'updateGroup',
    request: { maxConsumers: 3 },
    parameters: g1,
    entity: 'group:g1',
    before: { ...settings, subscriptions: [{ topicName: 't1', ...defaultSubscription }] },
    after: { ...settings, maxConsumers: 3 },
  },
  {
    act: 'removeGroup',
    parameters: g1,
    prepare: service => service.call('deRegister', { id: 1 }),
    entity: 'group:g1',
    before: {
      ...settings,
      subscriptions: [{ topicName: 't1', ...defaultSubscription }],
      offsets: [...places({ offsetVersion: 2 }), ...placesOfFailures({ offsetVersion: 2 })],
    },
    after: null,
  },
  {
    act: 'subscribe',
    request: { threadSize: 9 },
    parameters: { ...g1, ...t1 },
    entity: 'group:g1',
    before: { subscription: { topicName: 't1', ...defaultSubscription } },
    after: { subscription: { topicName: 't1', ...defaultSubscription, threadSize: 9 } },
  },
  {
    act: 'subscribe',
    parameters: { ...g1, topicName: 't2' },
    request: {},
    prepare: service => createTopic(service, 't2'),
    entity: 'group:g1',
    before: { subscription: null },
    after: { subscription: { topicName: 't2', ...defaultSubscription } },
  },
  {
    act: 'unsubscribe',
    parameters: { ...g1, ...t1 },
    entity: 'group:g1',
    before: {
      subscription: { topicName: 't1', ...defaultSubscription },
      offsets: [...places(), ...placesOfFailures()],
    },
    after: { subscription: null, offsets: [] },
  },
  {
    act: 'resetOffsets',
    request: { ...all, to: 'end' },
    parameters: g1,
    prepare: service => publish(service, ['a', 'b'], 1),
    entity: 'group:g1',
    before: { offsets: [...places(), ...placesOfFailures()] },
    after: {
      offsets: [
        { topicName: 't1', queues: { 1: { offset: 2, offsetVersion: 2 }, 2: { offset: 0, offsetVersion: 2 } } },
        ...placesOfFailures(),
      ],
    },
  },
  {
    act: 'stopQueues',
    request: { of: { queueId: 2 } },
    parameters: g1,
    entity: 'group:g1',
    before: { offsets: [{ topicName: 't1', queues: { 2: { offset: 0, offsetVersion: 1 } } }] },
    after: { offsets: [{ topicName: 't1', queues: { 2: { offset: 0, offsetVersion: 1, isStopped: true } } }] },
  },
  {
    act: 'startQueues',
    request: { of: { topicName: 't1' } },
    parameters: g1,
    prepare: service => service.call('stopQueues', { of: { topicName: 't1' } }, g1),
    entity: 'group:g1',
    before: { offsets: [...places({ isStopped: true }), ...placesOfFailures({ isStopped: true })] },
    after: { offsets: [...places(), ...placesOfFailures()] },
  },
]

/** Those fields of what was found that are expected. */
function fieldsOf(found: unknown, expected: object | null): unknown {
  if (found === null || expected === null) return found
  return Object.fromEntries(Object.keys(expected).map(field => [field, (found as Record<string, unknown>)[field]]))
}

export function auditSuite(name: string, { openStore, skip }: AuditOptions): void {
  suite(`the audit log: ${name}`, skip === undefined ? {} : { skip }, () => {
    let service: Service
    beforeEach(async () => {
      service = openService(openStore && { store: await openStore() })
    })
    afterEach(() => service.close())

    for (const { act, request, parameters = {}, prepare, entity, before, after } of rows) {
      test(`has one entry of ${act}, with what was there before and after (${JSON.stringify(request ?? {})})`, async () => {
        await consume(service, 2)
        await prepare?.(service)
        const earlier = (await entriesOf(service)).length
        await service.call(act, request, parameters)
        const [entry, ...others] = await entriesOf(service)
        assert.equal(others.length, earlier)
        assert.ok(entry)
        const nowMs = service.clock.now()
        assert.partialDeepStrictEqual(entry, { act, entity, who: 'local', ip: '10.0.0.7', outcome: 'done' })
        assert.deepEqual([entry.askedAtMs, entry.endedAtMs], [nowMs, nowMs])
        assert.deepEqual(entry.parameters, parameters)
        if (request) assert.partialDeepStrictEqual(entry.request, request)
        assert.deepEqual(fieldsOf(entry.before, before), before)
        assert.deepEqual(fieldsOf(entry.after, after), after)
      })
    }

    for (const act of changing) {
      test(`has an entry of ${act} also where that is refused, unless the request is not understood`, async () => {
        const { path }: Endpoint = endpoints[act]
        const parameters = Object.fromEntries(
          Array.from(path.matchAll(/\{(\w+)\}/g), ([, parameter = '']) => [parameter, 'nothing']),
        )
        const { status, json } = await service.send(act, undefined, parameters)
        const entries = await entriesOf(service)
        if (status === 400) return assert.deepEqual(entries, [])
        assert.ok(status === 404 || status === 409, `${status}`)
        assert.partialDeepStrictEqual(entries, [{ act, outcome: 'refused', code: json.code }])
        assert.equal(entries.length, 1)
      })
    }

    test('has one entry for each of many acts at once', async () => {
      const names = Array.from({ length: 12 }, (_, i) => `g${i}`)
      await Promise.all(names.map(each => service.call('createGroup', { name: each })))
      const entries = await entriesOf(service)
      assert.deepEqual(entries.map(({ entity }) => entity).sort(), names.map(each => `group:${each}`).sort())
      assert.ok(entries.every(({ outcome, after }) => outcome === 'done' && after !== null))
    })

    test('has of each of those who try the same at once what they were told', async () => {
      await Promise.all(Array.from({ length: 4 }, () => service.send('createTopic', { name: 't1' })))
      const outcomes = (await entriesOf(service)).map(({ outcome, code }) => code ?? outcome)
      assert.deepEqual(outcomes.sort(), ['already_exists', 'already_exists', 'already_exists', 'done'])
    })
  })
}
