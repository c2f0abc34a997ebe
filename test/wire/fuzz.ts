import assert from 'node:assert/strict'
import { after, before, mock, suite, test } from 'node:test'
import fc from 'fast-check'
import { type Endpoint, type EndpointName, endpoints } from '../../core/protocol/endpoints.ts'
import type { Store } from '../../core/store.ts'
import { base, createGroup, createTopic, join } from './scene.ts'
import { eventFor, openService, type Service } from './service.ts'

/**
 * Whatever a client sends, it is answered as its own doing: with 200, 201 or 4xx, in JSON, with nothing in the log. And
 * the service goes on as before.
 */
export type FuzzOptions = { openStore?: () => Promise<Store>; runs: number; skip?: string }

/** What the paths of requests are matched with. */
const fixedParameters = {
  topicName: 't1',
  groupName: 'g1',
  queueId: '1',
  failedId: '1-2-3',
  targetName: 'hook',
  secretId: 's1',
}

export function fuzzSuite(name: string, { openStore, runs, skip }: FuzzOptions): void {
  suite(`a request of any kind harms nobody: ${name}`, skip === undefined ? {} : { skip }, () => {
    let service: Service
    const lines: string[] = []
    before(async () => {
      service = openService({ ...(openStore && { store: await openStore() }), settings: { pollHoldMs: 0 } })
      await createTopic(service, 't1', 2)
      await createGroup(service, 'g1', ['t1'])
      await join(service, 'g1', ['t1'])
      mock.method(console, 'error', (line: string) => lines.push(line))
    })
    after(async () => {
      mock.restoreAll()
      await service.close()
    })

    async function assertHarmless(endpointName: EndpointName, body: string, parameter: string): Promise<void> {
      const endpoint: Endpoint = endpoints[endpointName]
      lines.length = 0
      const event = eventFor(endpoint, body, fixedParameters)
      const pathParameters = Object.fromEntries(Object.keys(event.pathParameters ?? {}).map(key => [key, parameter]))
      const { status, json } = await service.invoke(endpoint.function, { ...event, pathParameters })
      assert.ok(status < 500, `${status} ${JSON.stringify(json)}: ${lines.at(-1)}`)
      assert.equal(typeof json, 'object')
      assert.deepEqual(lines, [])
    }

    for (const endpointName of Object.keys(endpoints) as EndpointName[]) {
      test(endpointName, async () => {
        const request = fc.oneof(texts, fc.json(), { weight: 6, arbitrary: requestsOf(endpoints[endpointName]) })
        await fc.assert(
          fc.asyncProperty(request, parameters, (body, parameter) => assertHarmless(endpointName, body, parameter)),
          { numRuns: runs },
        )
      })
    }

    test('and the service goes on as before', async () => {
      const me = { ...base, name: 'afterwards' }
      await createGroup(service, 'still-there', ['t1'])
      const { id } = await service.call('register', me)
      const joining = { ...me, consumerId: id, consumerGroupNames: { 'still-there': ['t1'] } }
      assert.equal((await service.call('registerConsumerGroup', joining)).suc, true)
      const { suc, offsets } = await service.call('publish', { topicName: 't1', msgs: [{ body: 'afterwards' }] })
      assert.equal(suc, true)
      const { queueId, offset = 0 } = offsets?.[0] ?? {}
      const request = { queueId, offsetStart: offset - 1, offsetEnd: offset, topicName: 't1' }
      assert.equal((await service.call('pullData', request)).msgs?.[0]?.body, 'afterwards')
    })
  })
}

const anyText = fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map(unit => String.fromCharCode(unit)) })
const texts = fc.oneof(anyText, fc.constantFrom('', ' ', 'null', '[', '{', '{"a":', '"', '\ufeff{}', 'NaN', '[[[[]]]]'))

const names = fc.constantFrom(
  't1',
  'g1',
  'a',
  'afterwards',
  '',
  '__proto__',
  'constructor',
  'no name',
  'x\ud800',
  'a#b',
)
const parameters = fc.oneof(
  names.filter(name => name !== ''),
  fc.constant('x'.repeat(3000)),
  anyText.map(text => `x${text}`),
)
const numbers = fc.oneof({ weight: 4, arbitrary: fc.integer({ min: 0, max: 4 }) }, fc.constantFrom(1000, 2 ** 53 - 1))
const leaf = fc.oneof(
  names,
  anyText,
  numbers,
  fc.constantFrom(null, true, [], {}, -1, 1.5, 2 ** 53, 1e300, 'x'.repeat(2100), '漢'.repeat(900)),
)
/** A value for a field: mostly of its kind. */
const mostly = (likely: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 30, arbitrary: likely }, { weight: 1, arbitrary: leaf })
const namesIn = mostly(fc.array(mostly(names), { maxLength: 4 }))
const mapOf = (value: fc.Arbitrary<unknown>) =>
  mostly(
    fc.array(fc.tuple(fc.oneof(names, anyText), value), { maxLength: 4 }).map(entries => Object.fromEntries(entries)),
  )

const messages = fc.record(
  {
    body: mostly(anyText),
    id: mostly(fc.nat()),
    tag: mostly(anyText),
    bizId: mostly(anyText),
    traceId: mostly(anyText),
    key: mostly(anyText),
    head: mapOf(mostly(anyText)),
    retryCount: mostly(numbers),
    partitionInfo: mostly(fc.record({ queueId: mostly(numbers), strictMode: mostly(fc.constantFrom(0, 1)) })),
  },
  { requiredKeys: ['body'] },
)
const commits = fc.record({
  queueOffsetId: mostly(fc.integer({ min: 1, max: 4 })),
  offsetVersion: mostly(numbers),
  offset: mostly(numbers),
  consumerGroupName: mostly(names),
})

/** What a field of a request may hold, by its name. */
const fields: Record<string, fc.Arbitrary<unknown>> = {
  name: mostly(names),
  clientIp: mostly(names),
  sdkVersion: mostly(names),
  id: mostly(numbers),
  consumerId: mostly(numbers),
  consumerIds: mostly(fc.array(mostly(numbers), { maxLength: 4 })),
  asyn: mostly(fc.constantFrom(0, 1)),
  consumerGroupName: mostly(fc.constantFrom('g1', 'g1', 'g2')),
  consumerGroupNames: fc.oneof({ weight: 3, arbitrary: mapOf(namesIn) }, namesIn),
  consumerGroupVersion: mapOf(mostly(numbers)),
  topicName: mostly(fc.constantFrom('t1', 't1', 't2')),
  topicNames: namesIn,
  topics: namesIn,
  queueId: mostly(fc.integer({ min: 1, max: 3 })),
  offsetStart: mostly(numbers),
  offsetEnd: mostly(numbers),
  maxBytes: mostly(numbers),
  waitMs: mostly(numbers),
  queueOffsets: mostly(fc.array(mostly(commits), { maxLength: 4 })),
  flag: mostly(fc.constantFrom(0, 1)),
  msgs: mostly(fc.array(mostly(messages), { minLength: 1, maxLength: 4 })),
  failMsg: mostly(
    fc.record(
      {
        topicName: mostly(fc.constantFrom('g1_t1_fail', 't1')),
        msgs: mostly(fc.array(mostly(messages), { maxLength: 4 })),
      },
      { requiredKeys: [] },
    ),
  ),
  ids: mostly(fc.array(mostly(numbers), { maxLength: 4 })),
  queueOffsetId: mostly(fc.integer({ min: 1, max: 4 })),
  offsetVersion: mostly(fc.constantFrom(0, 1)),
  synFlag: mostly(numbers),
  publishId: mostly(fc.constantFrom('p-1', 'p-2', 'p-3')),
  attempt: mostly(fc.constantFrom(1, 2)),
  attemptAgeMs: mostly(numbers),
  // Of a topic that is created, how many; of claims, which.
  queues: fc.oneof(
    mostly(fc.integer({ min: 0, max: 4 })),
    mostly(fc.array(fc.record({ queueOffsetId: mostly(numbers), offsetVersion: mostly(numbers) }), { maxLength: 3 })),
  ),
  mode: mostly(fc.constantFrom('balanced', 'claimed', 'broadcast')),
  allowedIps: namesIn,
  deniedIps: mostly(fc.array(mostly(fc.constantFrom('10.0.0.1', '10.0.0.0/8', '::1', '::/0')), { maxLength: 3 })),
  maxConsumers: mostly(numbers),
  count: mostly(fc.integer({ min: 0, max: 3 })),
  readOnly: mostly(fc.boolean()),
  claimant: mostly(names),
  maxQueues: mostly(numbers),
  leaseMs: mostly(fc.constantFrom(1_000, 60_000)),
  queueIds: mostly(fc.array(mostly(numbers), { maxLength: 4 })),
  instanceId: mostly(fc.constantFrom('i-1', 'i-2')),
  returning: mostly(fc.boolean()),
  subEnv: mostly(fc.constantFrom('default', 'fat1', 'FAT2')),
  retentionMs: mostly(fc.constantFrom(3_600_000, 1)),
  threadSize: mostly(numbers),
  consumerBatchSize: mostly(numbers),
  pullBatchSize: mostly(numbers),
  maxPullTimeSeconds: mostly(numbers),
  tag: mostly(names),
  delayProcessTimeSeconds: mostly(numbers),
  timeoutSeconds: mostly(numbers),
  retryCount: mostly(numbers),
  retryDelaySeconds: mostly(numbers),
  retryBackoffRate: mostly(fc.constantFrom(1, 1.5, 11)),
  maxRetryDelaySeconds: mostly(numbers),
  retryInPlace: mostly(fc.boolean()),
  trace: mostly(fc.boolean()),
}

/** JSON of some of an endpoint's fields, and now and then of one that it does not know. */
function requestsOf({ request }: Endpoint): fc.Arbitrary<string> {
  const known = request && 'entries' in request ? Object.keys(request.entries as object) : Object.keys(fields)
  const entries = known.map(name => [name, fields[name] ?? mostly(names)] as const)
  const some = fc.record(Object.fromEntries(entries), { requiredKeys: [] })
  const most = fc.record(Object.fromEntries(entries))
  const odd = fc.record({ [`${known[0]}2`]: leaf, __proto__: leaf }, { requiredKeys: [] })
  return fc
    .oneof(
      some,
      most,
      fc.tuple(some, odd).map(([one, other]) => ({ ...one, ...other })),
    )
    .map(value => JSON.stringify(value))
}
