import assert from 'node:assert/strict'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { defaultSubscription } from '../../core/admin/subscriptions.ts'
import type { EndpointName } from '../../core/protocol/endpoints.ts'
import { otherSettings } from '../store/contract.ts'
import { ordinary } from './operator.ts'
import { assignment, base, createGroup, createTopic, firstQueue, join, publish } from './scene.ts'
import { openService, type Parameters, type Service } from './service.ts'

let service: Service
beforeEach(() => {
  service = openService()
})
afterEach(() => service.close())

/** An error's status, code and text. */
async function refusal(endpoint: EndpointName, request: unknown, parameters?: Parameters) {
  const { status, json } = await service.send(endpoint, request, parameters)
  return [status, json.code, json.message]
}

suite('a topic', () => {
  test('is created with 201 and shown as it is', async () => {
    const topic = await service.call('createTopic', { name: 't1', queues: 2, retentionMs: 3_600_000 })
    assert.deepEqual(topic, {
      name: 't1',
      topicId: 1,
      retentionMs: 3_600_000,
      createdAtMs: service.clock.now(),
      queues: [
        { queueId: 1, readOnly: false, nextOffset: 1 },
        { queueId: 2, readOnly: false, nextOffset: 1 },
      ],
      groups: [],
    })
  })

  test('has four queues and seven days of retention by default', async () => {
    const { queues, retentionMs } = await service.call('createTopic', { name: 't1' })
    assert.deepEqual([queues.length, retentionMs], [4, 7 * 86_400_000])
  })

  test('can have 1000 queues', async () => {
    const queueIds = await createTopic(service, 't1', 1000)
    assert.equal(new Set(queueIds).size, 1000)
  })

  test('is shown with how far its queues reach, and the groups that subscribe to it', async () => {
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    await publish(service, ['a', 'b'])
    const { queues, groups } = await service.call('getTopicView', undefined, { topicName: 't1' })
    assert.deepEqual([queues[0]?.nextOffset, groups], [3, ['g1']])
  })

  test('is listed', async () => {
    for (const name of ['b', 'a', 'c']) await createTopic(service, name)
    assert.deepEqual(await service.call('listTopics'), { topics: ['a', 'b', 'c'], failTopics: [] })
  })

  for (const name of ['a', 'x'.repeat(100), '__proto__', '1', '...', '.a', 'A.b_c-9', 'fail_t', 'failure']) {
    test(`may be called ${name.slice(0, 20)}`, async () => {
      await createTopic(service, name)
      assert.equal((await service.call('getTopicView', undefined, { topicName: name })).name, name)
    })
  }

  const nameRule =
    'name: must be 1 to 100 characters of A-Z, a-z, 0-9, dot, underscore and hyphen, and neither "." nor ".."'
  const retentionRule = 'retentionMs: expected'
  const failRule = 'ends in "fail"; such names are kept for fail topics'
  const refusals: [unknown, string][] = [
    ['', 'name: is required'],
    [{}, 'name: is required'],
    [{ name: '' }, nameRule],
    [{ name: 'x'.repeat(101) }, nameRule],
    [{ name: '.' }, nameRule],
    [{ name: '..' }, nameRule],
    [{ name: 'a b' }, nameRule],
    [{ name: 'a/b' }, nameRule],
    [{ name: 'ä' }, nameRule],
    [{ name: 'a\n' }, nameRule],
    [{ name: 7 }, 'name: expected string'],
    [{ name: 'g_t1_fail' }, `topic name g_t1_fail ${failRule}`],
    [{ name: 'FAIL' }, `topic name FAIL ${failRule}`],
    [{ name: 'a', queues: 0 }, 'queues: expected >=1, not 0'],
    [{ name: 'a', queues: 1001 }, 'queues: expected <=1000, not 1001'],
    [{ name: 'a', queues: 1.5 }, 'queues: expected a whole number, not 1.5'],
    [{ name: 'a', queues: '4' }, 'queues: expected number'],
    [{ name: 'a', retentionMs: 3_599_999 }, `${retentionRule} >=3600000, not 3599999`],
    [{ name: 'a', retentionMs: 31_536_000_001 }, `${retentionRule} <=31536000000, not 31536000001`],
    [{ name: 'a', que: 4 }, 'que: no such field'],
  ]
  for (const [request, message] of refusals) {
    test(`is refused as ${JSON.stringify(request).slice(0, 40)}`, async () => {
      assert.deepEqual(await refusal('createTopic', request), [400, 'bad_request', message])
    })
  }

  test('is created once', async () => {
    await createTopic(service, 't1')
    assert.deepEqual(await refusal('createTopic', { name: 't1' }), [409, 'already_exists', 'topic t1 exists already'])
  })

  test('is created once by several who try at once', async () => {
    const replies = await Promise.all(Array.from({ length: 4 }, () => service.send('createTopic', { name: 't1' })))
    assert.deepEqual(replies.map(reply => reply.status).sort(), [201, 409, 409, 409])
  })

  for (const topicName of ['nothing', 'a b', 'x'.repeat(3000), '%', '\ud800']) {
    test(`is not found by the name ${JSON.stringify(topicName.slice(0, 10))}`, async () => {
      const [status, code] = await refusal('getTopicView', undefined, { topicName })
      assert.deepEqual([status, code], [404, 'not_found'])
    })
  }
})

suite('a group', () => {
  test('is created with 201 and shown as it is', async () => {
    const group = await service.call('createGroup', { name: 'g1' })
    const versions = { rbVersion: 0, metaVersion: 1, version: 1 }
    const settings = { mode: 'balanced', allowedIps: [], deniedIps: [], maxConsumers: 0 }
    const nothing = { copies: [], subscriptions: [], unhandledTopics: [], members: [], queues: [], targets: [] }
    assert.deepEqual(group, { name: 'g1', ...settings, ...versions, ...nothing })
  })

  test('has its mode for ever, and says so', async () => {
    await service.call('createGroup', { name: 'g1' })
    const [status, code, message] = await refusal('updateGroup', { mode: 'claimed' }, { groupName: 'g1' })
    assert.deepEqual([status, code], [409, 'conflict'])
    assert.match(String(message), /balanced for ever/)
    const { maxConsumers } = await service.call(
      'updateGroup',
      { mode: 'balanced', maxConsumers: 2 },
      { groupName: 'g1' },
    )
    assert.equal(maxConsumers, 2)
  })

  test('that is claimed takes no lists of members, for it has none', async () => {
    for (const settings of [{ allowedIps: ['10.0.0.1'] }, { deniedIps: ['10.0.0.1'] }, { maxConsumers: 1 }]) {
      const [status, code] = await refusal('createGroup', { name: 'g1', mode: 'claimed', ...settings })
      assert.deepEqual([status, code], [400, 'bad_request'])
    }
    await service.call('createGroup', { name: 'g1', mode: 'claimed', maxConsumers: 0, allowedIps: [] })
    const [status] = await refusal('updateGroup', { maxConsumers: 1 }, { groupName: 'g1' })
    assert.equal(status, 400)
  })

  test('is shown with its subscriptions, its members, and how far they are', async () => {
    const [queueId] = await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    const consumerId = await join(service, 'g1', ['t1'], 'c1')
    await publish(service, ['a', 'b', 'c'])
    const { subscriptions, members, queues } = await service.call('getGroup', undefined, { groupName: 'g1' })
    assert.deepEqual(subscriptions, [{ topicName: 't1', failTopicName: 'g1_t1_fail', ...defaultSubscription }])
    const nowMs = service.clock.now()
    const told = { ip: base.clientIp, topics: ['t1'], heartbeatAtMs: nowMs, isStandby: false }
    assert.deepEqual(members, [{ consumerId, consumerName: 'c1', ...told }])
    assert.deepEqual(ordinary(queues), [
      {
        topicName: 't1',
        queueId,
        queueOffsetId: 1,
        offset: 0,
        offsetVersion: 1,
        isStopped: false,
        lag: 3,
        waitingSinceMs: nowMs,
        isStalled: false,
        consumerName: 'c1',
      },
    ])
  })

  test('is listed', async () => {
    for (const name of ['b', 'a']) await createGroup(service, name, [])
    assert.deepEqual(await service.call('listGroups'), { groups: ['a', 'b'] })
  })

  for (const name of ['.', '..']) {
    test(`is refused as ${name}, which no path can name`, async () => {
      const [status, code] = await refusal('createGroup', { name })
      assert.deepEqual([status, code], [400, 'bad_request'])
    })
  }

  test('is created once', async () => {
    await createGroup(service, 'g1', [])
    assert.deepEqual(await refusal('createGroup', { name: 'g1' }), [409, 'already_exists', 'group g1 exists already'])
  })

  for (const groupName of ['nobody', 'a b', 'x'.repeat(3000), '\ud800']) {
    test(`is not found by the name ${JSON.stringify(groupName.slice(0, 10))}`, async () => {
      const [status, code] = await refusal('getGroup', undefined, { groupName })
      assert.deepEqual([status, code], [404, 'not_found'])
    })
  }
})

suite('a subscription', () => {
  const to = { groupName: 'g1', topicName: 't1' }
  const named = { topicName: 't1', failTopicName: 'g1_t1_fail' }
  beforeEach(async () => {
    await createTopic(service, 't1', 2)
    await service.call('createGroup', { name: 'g1' })
  })

  test('begins with what is published from now on', async () => {
    for (const queueId of [1, 2]) await publish(service, ['a', 'b'], queueId)
    const { queues } = await service.call('subscribe', {}, to)
    assert.deepEqual(
      ordinary(queues).map(queue => [queue.offset, queue.lag]),
      [
        [2, 0],
        [2, 0],
      ],
    )
  })

  test('may be to a topic of very many queues', async () => {
    await createTopic(service, 't2', 100)
    const { queues } = await service.call('subscribe', {}, { groupName: 'g1', topicName: 't2' })
    assert.equal(new Set(ordinary(queues).map(queue => queue.queueOffsetId)).size, 100)
  })

  test('needs no body', async () => {
    assert.equal((await service.call('subscribe', undefined, to)).subscriptions.length, 1)
  })

  test('has the settings that it is given, and hands them to its consumers', async () => {
    const { subscriptions } = await service.call('subscribe', otherSettings, to)
    assert.deepEqual(subscriptions, [{ ...named, ...otherSettings }])
    const told = await firstQueue(service, await join(service, 'g1', ['t1']))
    const { threadSize, consumerBatchSize, pullBatchSize, maxPullTimeSeconds, tag } = otherSettings
    const same = { threadSize, consumerBatchSize, pullBatchSize, tag }
    const inPmqsWords = { maxPullTime: maxPullTimeSeconds, delayProcessTime: 43_200, timeout: 1, traceFlag: 1 }
    assert.partialDeepStrictEqual(told, { ...same, ...inPmqsWords, retryInPlace: true })
  })

  for (const retryCount of [0, 1, 3, 100]) {
    test(`says to PMQ's clients one more than its retries, which then makes exactly those: ${retryCount}`, async () => {
      await service.call('subscribe', { retryCount }, to)
      const told = await firstQueue(service, await join(service, 'g1', ['t1']))
      assert.equal(told.retryCount, retryCount + 1)
    })
  }

  test('says nothing of tags and order where there is nothing to say', async () => {
    await service.call('subscribe', {}, to)
    const told = await firstQueue(service, await join(service, 'g1', ['t1']))
    assert.ok(!('tag' in told) && !('retryInPlace' in told))
  })

  test('takes changes to consumers that run, by the version that they hear in passing', async () => {
    await service.call('subscribe', {}, to)
    const consumerId = await join(service, 'g1', ['t1'])
    const before = await assignment(service, consumerId)
    await service.call('subscribe', otherSettings, to)
    const { versions } = await service.call('heartbeat', { ...base, consumerId, asyn: 0 })
    assert.ok((versions?.g1 ?? 0) > before.version)
    const after = await assignment(service, consumerId)
    assert.deepEqual(
      after.queues.map(queue => [queue.queueOffsetId, queue.offsetVersion, queue.timeout]),
      before.queues.map(queue => [queue.queueOffsetId, queue.offsetVersion, 1]),
    )
  })

  const ends = {
    tag: ['', 'x'.repeat(1000)],
    delayProcessTimeSeconds: [0, 43_200],
    timeoutSeconds: [0, 43_200],
    retryCount: [0, 100],
    retryDelaySeconds: [0, 3_600],
    retryBackoffRate: [1, 10],
    maxRetryDelaySeconds: [60, 43_200],
  }
  for (const [name, values] of Object.entries(ends)) {
    for (const value of values) {
      test(`may have a ${name} of ${String(value).slice(0, 5)}`, async () => {
        const { subscriptions } = await service.call('subscribe', { [name]: value }, to)
        assert.deepEqual(subscriptions, [{ ...named, ...defaultSubscription, [name]: value }])
      })
    }
  }

  test('keeps the settings that a change does not name', async () => {
    await service.call('subscribe', { threadSize: 7 }, to)
    const { subscriptions } = await service.call('subscribe', { pullBatchSize: 9 }, to)
    assert.deepEqual([subscriptions[0]?.threadSize, subscriptions[0]?.pullBatchSize], [7, 9])
  })

  test('keeps its offsets when it is repeated', async () => {
    await service.call('subscribe', {}, to)
    for (const queueId of [1, 2]) await publish(service, ['a'], queueId)
    const { queues } = await service.call('subscribe', {}, to)
    assert.deepEqual(
      ordinary(queues).map(queue => queue.lag),
      [1, 1],
    )
  })

  test('gives the queues of its topic to members that are there already', async () => {
    const consumerId = await join(service, 'g1', ['t1'])
    await service.call('subscribe', {}, to)
    assert.equal((await assignment(service, consumerId)).queues.length, 2)
  })

  const refusals: [object, object, unknown[]][] = [
    [{}, { groupName: 'nobody', topicName: 't1' }, [404, 'not_found', 'there is no group nobody']],
    [{}, { groupName: 'g1', topicName: 'nothing' }, [404, 'not_found', 'there is no topic nothing']],
    [{ threadSize: 0 }, to, [400, 'bad_request', 'threadSize: expected >=1, not 0']],
    [{ threadSize: 51 }, to, [400, 'bad_request', 'threadSize: expected <=50, not 51']],
    [{ threads: 5 }, to, [400, 'bad_request', 'threads: no such field']],
    [{ tag: 'x'.repeat(1001) }, to, [400, 'bad_request', 'tag: expected <=1000, not 1001']],
    [
      { delayProcessTimeSeconds: 43_201 },
      to,
      [400, 'bad_request', 'delayProcessTimeSeconds: expected <=43200, not 43201'],
    ],
    [{ timeoutSeconds: -1 }, to, [400, 'bad_request', 'timeoutSeconds: expected >=0, not -1']],
    [{ retryCount: 101 }, to, [400, 'bad_request', 'retryCount: expected <=100, not 101']],
    [{ retryCount: 0.5 }, to, [400, 'bad_request', 'retryCount: expected a whole number, not 0.5']],
    [{ retryBackoffRate: 0.9 }, to, [400, 'bad_request', 'retryBackoffRate: expected >=1, not 0.9']],
    [{ retryBackoffRate: 10.1 }, to, [400, 'bad_request', 'retryBackoffRate: expected <=10, not 10.1']],
    [
      { retryDelaySeconds: 3_601 },
      to,
      [400, 'bad_request', 'retryDelaySeconds (3601) must not be above maxRetryDelaySeconds (3600)'],
    ],
    [{ retryInPlace: 1 }, to, [400, 'bad_request', 'retryInPlace: expected boolean']],
  ]
  for (const [request, parameters, expected] of refusals) {
    test(`is refused: ${expected[2]}`, async () => {
      assert.deepEqual(await refusal('subscribe', request, parameters as Parameters), expected)
    })
  }
})
