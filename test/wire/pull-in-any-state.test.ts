import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { EndpointName } from '../../core/protocol/endpoints.ts'
import { tick } from '../../core/tick/tick.ts'
import { openSqliteStore } from '../../store/sqlite/open.ts'
import { seededRandom } from '../support/random.ts'
import { base } from './scene.ts'
import { openService, type Parameters } from './service.ts'

/**
 * Whatever publishers, consumers, operators, time and the end of retention have made of topics, fail topics and groups: a
 * pull never fails because of what there is, and leads through all of a queue.
 */
const seeds = 6
const acts = 120
const retentionMs = 3_600_000

const topicNames = ['t1', 't2']
const groupNames = ['g1', 'g2']
const failTopicNames = groupNames.flatMap(group => topicNames.map(topic => `${group}_${topic}_fail`))
const texts = ['', 'a', '\u0000', '\ud800', '__proto__', '"', '𠮷'.repeat(300), 'x'.repeat(200_000), '{"msgs":[']

function createWorld(seed: number) {
  const random = seededRandom(seed)
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const store = openSqliteStore(':memory:')
  const service = openService({ store, settings: { pollHoldMs: 0 } })
  const consumerIds: number[] = []

  /** Whatever is answered: only that something broke is wrong. */
  async function send(endpoint: EndpointName, request?: unknown, parameters?: Parameters) {
    const { status, text, json } = await service.send(endpoint, request, parameters)
    assert.ok(status < 500, `${endpoint} ${JSON.stringify(request)?.slice(0, 300)}: ${text}`)
    return json
  }

  const queuesOf = async (topicName: string) => (await store.readTopic(topicName))?.queues ?? []
  const queueOf = async (topicName: string) => String(pick(await queuesOf(topicName))?.queueId ?? 0)

  const message = () => ({
    body: pick(texts),
    key: pick([undefined, 'k', pick(texts).slice(0, 9)]),
    tag: pick([undefined, 'a', 'b']),
    head: pick([undefined, { [pick(texts).slice(0, 9)]: pick(texts).slice(0, 99) }]),
    retryCount: pick([undefined, 0, 1, 3, 1_000]),
  })
  const messages = () => Array.from({ length: pick([1, 1, 2, 7]) }, message)
  const publishId = () => pick([undefined, 'p1', 'p2'])
  const attempt = () => pick([undefined, 1, 2])

  /** Commits, claims and failures of whoever has the queues, and of who had them. */
  async function placeOf(groupName: string) {
    const place = pick((await store.readGroup(groupName))?.offsets ?? [])
    return place && { ...place, offsetVersion: place.offsetVersion - pick([0, 0, 0, 1]) }
  }

  const changes: (() => Promise<unknown>)[] = [
    () =>
      send('publish', { topicName: pick(topicNames), msgs: messages(), publishId: publishId(), attempt: attempt() }),
    () =>
      send('publish', { topicName: pick(topicNames), msgs: messages(), publishId: publishId(), attempt: attempt() }),
    async () => {
      const place = await placeOf(pick(groupNames))
      const { queueId, groupName, queueOffsetId, offsetVersion, consumerId } = place ?? {}
      const failMsg = { topicName: pick(failTopicNames), msgs: messages(), publishId: publishId(), attempt: attempt() }
      const owner = { consumerGroupName: groupName, queueOffsetId, offsetVersion, consumerId }
      await send('publishAndUpdateResultFailMsg', { ...base, queueId, failMsg, ...pick([owner, {}]) })
    },
    async () => {
      const { groupName, queueOffsetId, offsetVersion } = (await placeOf(pick(groupNames))) ?? {}
      const entry = { queueOffsetId, offsetVersion, offset: pick([1, 5, 1_000]), consumerGroupName: groupName }
      await send('commitOffset', { ...base, queueOffsets: groupName ? [entry] : [], flag: pick([0, 1]) })
    },
    async () => {
      const { id } = await send('register', { ...base, name: `c${pick([1, 2, 3])}` })
      consumerIds.push(Number(id))
      await send('registerConsumerGroup', {
        ...base,
        consumerId: id,
        consumerGroupNames: { [pick(groupNames)]: topicNames },
      })
    },
    () => send('deRegister', { ...base, id: pick(consumerIds) ?? 1 }),
    () => send('addQueues', { count: 1 }, { topicName: pick(topicNames) }),
    async () => {
      const topicName = pick(topicNames)
      await send('changeQueue', { readOnly: pick([true, false]) }, { topicName, queueId: await queueOf(topicName) })
    },
    async () => {
      const topicName = pick(topicNames)
      await send('removeQueue', undefined, { topicName, queueId: await queueOf(topicName) })
    },
    () => send('subscribe', { tag: pick(['', 'a']) }, { groupName: pick(groupNames), topicName: pick(topicNames) }),
    () => send('unsubscribe', undefined, { groupName: pick(groupNames), topicName: pick(topicNames) }),
    () => send('resetOffsets', { of: 'all', to: pick(['start', 'end']) }, { groupName: pick(groupNames) }),
    () => send('removeGroup', undefined, { groupName: pick(groupNames) }),
    () => send('createGroup', { name: pick(groupNames), mode: pick(['balanced', 'claimed', 'broadcast']) }),
    () => send('claimQueues', { consumerGroupName: pick(groupNames), claimant: 'x', leaseMs: 1_000 }),
    async () => service.clock.advance(pick([1_000, 61_000, retentionMs, 15 * 86_400_000])),
    () => store.trim(service.clock.now() - pick([0, retentionMs]), pick([1, 3, 1_000])),
    () => tick(service.core),
  ]

  /** Pulls from anywhere, as anybody. */
  async function pullAnything() {
    const place = await placeOf(pick(groupNames))
    const offsetStart = pick([0, 1, 2, 7, 1_000, 2 ** 53 - 1])
    const request = {
      queueId: place?.queueId ?? pick([0, 1, 99]),
      offsetStart,
      topicName: pick([place?.topicName, ...topicNames, ...failTopicNames]),
      consumerGroupName: pick([undefined, ...groupNames]),
      ...pick([{ maxBytes: pick([1, 1_000, 4_000_000]) }, { offsetEnd: offsetStart + pick([1, 50, 2_000]) }]),
      ...pick([{}, { queueOffsetId: place?.queueOffsetId, offsetVersion: place?.offsetVersion }]),
    }
    await send('pullData', { ...base, ...request })
  }

  /** Pulls a queue to its end in small steps; each has to lead on. */
  async function walk(topicName: string, queueId: number) {
    for (let offsetStart = 0; ; ) {
      const request = { ...base, queueId, offsetStart, topicName, maxBytes: 1 }
      const { suc, batches = [], msg } = await service.call('pullData', request)
      assert.ok(suc, msg)
      const batch = batches.at(-1)
      if (!batch) {
        const last = { queueId, fromOffset: 2 ** 53 - 1, direction: 'backward', limit: 1, consistent: true } as const
        const [newest] = await store.readHeaders(last)
        const isThere = newest !== undefined && newest.expiresAtMs > service.clock.now()
        assert.ok(!isThere || offsetStart === newest.base + newest.count - 1, `${queueId} ends at ${offsetStart}`)
        return offsetStart
      }
      const next = batch.offset + batch.msgs.length - 1
      assert.ok(next > offsetStart, `behind ${offsetStart} comes ${next}`)
      const window = { ...base, queueId, offsetStart, offsetEnd: offsetStart + 50, topicName }
      const first = (await service.call('pullData', window)).msgs?.[0]?.id
      assert.equal(first, Math.max(offsetStart + 1, batches[0]?.offset ?? 0), 'a PMQ client is given the same')
      offsetStart = next
    }
  }

  return {
    service,
    pullAnything,
    async setUp() {
      for (const name of topicNames) await send('createTopic', { name, queues: 2, retentionMs })
      for (const name of groupNames) await send('createGroup', { name })
      for (const groupName of groupNames)
        for (const topicName of topicNames) await send('subscribe', {}, { groupName, topicName })
    },
    change: () => pick(changes)(),
    async walkAll() {
      let read = 0
      // What containers remember of topics is that old at most.
      service.clock.advance(2_000)
      for (const topicName of [...topicNames, ...failTopicNames]) {
        for (const { queueId } of await queuesOf(topicName)) read += await walk(topicName, queueId)
      }
      return read
    },
  }
}

describe('a pull', () => {
  for (let seed = 1; seed <= seeds; seed++) {
    test(`never fails because of what there is, and leads through all of it: seed ${seed}`, async () => {
      const { service, setUp, change, pullAnything, walkAll } = createWorld(seed)
      await setUp()
      let read = 0
      for (let act = 1; act <= acts; act++) {
        await change()
        await pullAnything()
        if (act % 10 === 0) read += await walkAll()
      }
      assert.ok(read > 0)
      await service.close()
    })
  }
})
