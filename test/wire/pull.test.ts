import assert from 'node:assert/strict'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { announceGapMs } from '../../core/arrivals.ts'
import { base, consume, createTopic, publish, pull, register } from './scene.ts'
import { openService, type Service, turn } from './service.ts'

let service: Service
beforeEach(() => {
  service = openService()
})
afterEach(() => service.close())

const idsOf = (messages: { id: number }[]) => messages.map(message => message.id)
const hourMs = 3_600_000

suite("the window of a PMQ client's pull", () => {
  let queueId = 0
  beforeEach(async () => {
    queueId = (await createTopic(service, 't1'))[0] ?? 0
  })

  test('begins behind offsetStart and ends with offsetEnd', async () => {
    for (const body of ['a', 'b', 'c', 'd']) await publish(service, [body])
    assert.deepEqual(idsOf(await pull(service, queueId, 1, 3)), [2, 3])
  })

  test('may begin and end inside of a batch', async () => {
    await publish(service, ['a', 'b', 'c', 'd', 'e', 'f'])
    assert.deepEqual(idsOf(await pull(service, queueId, 2, 4)), [3, 4])
  })

  test('may reach over several batches, in order', async () => {
    for (const bodies of [['a', 'b'], ['c'], ['d', 'e', 'f']]) await publish(service, bodies)
    assert.deepEqual(idsOf(await pull(service, queueId, 1, 5)), [2, 3, 4, 5])
  })

  test('is answered with an empty list when there is nothing in it', async () => {
    assert.deepEqual(await pull(service, queueId, 0, 50), [])
  })

  test('is answered with an empty list at the end of the queue', async () => {
    await publish(service, ['a', 'b'])
    assert.deepEqual(await pull(service, queueId, 2, 52), [])
  })

  test('is answered with an empty list far behind the end of the queue', async () => {
    await publish(service, ['a', 'b'])
    assert.deepEqual(await pull(service, queueId, 1000, 1050), [])
  })

  test('is cut at 1000 messages', async () => {
    const bodies = Array.from({ length: 1000 }, () => '')
    for (let i = 0; i < 2; i++) await publish(service, bodies)
    assert.equal((await pull(service, queueId, 0, 2000)).length, 1000)
  })

  test('is answered with what lies beyond it when all in it is past retention, and says how much was passed over', async () => {
    await publish(service, ['a', 'b', 'c'])
    service.clock.step(8 * 24 * hourMs)
    await publish(service, ['d', 'e'])
    const request = { ...base, queueId, offsetStart: 0, offsetEnd: 2, topicName: 't1', consumerGroupName: 'g1' }
    const { msgs, skipped } = await service.call('pullData', request)
    assert.deepEqual([idsOf(msgs ?? []), skipped], [[4, 5], 3])
  })

  test('has no more messages beyond it than it is wide', async () => {
    await publish(service, ['a', 'b', 'c'])
    service.clock.step(8 * 24 * hourMs)
    await publish(service, ['d', 'e', 'f', 'g'])
    assert.deepEqual(idsOf(await pull(service, queueId, 0, 2)), [4, 5])
  })

  test('leads through a whole queue, once over each message, whatever its width', async () => {
    const sizes = [1, 7, 2, 30, 1, 1, 12]
    for (const size of sizes)
      await publish(
        service,
        Array.from({ length: size }, (_, i) => `${size}.${i}`),
      )
    const total = sizes.reduce((sum, size) => sum + size)
    for (const width of [1, 2, 5, 50, 1000]) {
      const seen: number[] = []
      for (let at = 0; ; at = seen.at(-1) ?? 0) {
        const messages = await pull(service, queueId, at, at + width)
        if (messages.length === 0) break
        seen.push(...idsOf(messages))
      }
      assert.deepEqual(
        seen,
        Array.from({ length: total }, (_, i) => i + 1),
      )
    }
  })
})

suite('a pulled message', () => {
  test('has the fields that a PMQ client reads, and what was published in them', async () => {
    const [queueId = 0] = await createTopic(service, 't1')
    const message = { id: 0, tag: 'tagA', bizId: 'b1', head: { k: 'v' }, body: 'hello', traceId: 'abc', retryCount: 2 }
    await service.call('publish', { ...base, topicName: 't1', msgs: [message] })
    assert.deepEqual(await pull(service, queueId, 0, 50), [
      { ...message, id: 1, sendIp: '10.1.1.1', sendTime: '2024-01-01 12:30:15:007' },
    ])
  })

  test('has a tag and a bizId that are empty where none was given, and no head', async () => {
    const [queueId = 0] = await createTopic(service, 't1')
    await service.call('publish', { topicName: 't1', msgs: [{ body: 'bare' }] })
    const [{ traceId, ...message } = { traceId: '' }] = await pull(service, queueId, 0, 50)
    assert.deepEqual(message, {
      id: 1,
      tag: '',
      bizId: '',
      body: 'bare',
      retryCount: 0,
      sendTime: '2024-01-01 12:30:15:007',
    })
    assert.ok(traceId.length > 0)
  })

  test('has a traceId of its own, the same at each reading, where none was given', async () => {
    const [queueId = 0] = await createTopic(service, 't1')
    await publish(service, ['a', 'b'])
    const traceIds = (await pull(service, queueId, 0, 50)).map(message => message.traceId)
    assert.equal(new Set(traceIds).size, 2)
    assert.deepEqual(
      (await pull(service, queueId, 0, 50)).map(message => message.traceId),
      traceIds,
    )
  })

  for (const [timeZone, sendTime] of [
    ['UTC', '2024-01-01 12:30:15:007'],
    ['Asia/Shanghai', '2024-01-01 20:30:15:007'],
    ['America/St_Johns', '2024-01-01 09:00:15:007'],
  ] as const) {
    test(`has its sendTime in the clients' zone: ${timeZone}`, async () => {
      const other = openService({ settings: { timeZone } })
      const [queueId = 0] = await createTopic(other, 't1')
      await publish(other, ['a'])
      assert.equal((await pull(other, queueId, 0, 50))[0]?.sendTime, sendTime)
      await other.close()
    })
  }

  test('has midnight as hour 00', async () => {
    const [queueId = 0] = await createTopic(service, 't1')
    service.clock.step(Date.UTC(2024, 1, 29) - service.clock.now())
    await publish(service, ['a'])
    assert.equal((await pull(service, queueId, 0, 50))[0]?.sendTime, '2024-02-29 00:00:00:000')
  })
})

suite('a pull', () => {
  const refusals: [string, object | string, string][] = [
    ['no body', '', '参数不能为空！'],
    ['the body null', 'null', '参数不能为空！'],
    ['no fields', '{}', '参数不对！'],
    ['the queue 0', { queueId: 0, offsetStart: 0, offsetEnd: 50 }, '参数不对！'],
    ['a queue below 0', { queueId: -1, offsetStart: 0, offsetEnd: 50 }, '参数不对！'],
    ['a start below 0', { queueId: 1, offsetStart: -1, offsetEnd: 50 }, '参数不对！'],
    ['a start at the end', { queueId: 1, offsetStart: 50, offsetEnd: 50 }, '参数不对！'],
    ['a start behind the end', { queueId: 1, offsetStart: 51, offsetEnd: 50 }, '参数不对！'],
    ['no end', { queueId: 1, offsetStart: 0 }, '参数不对！'],
    ['an unknown queue', { queueId: 4711, offsetStart: 0, offsetEnd: 50 }, 'queueId_4711_is_not_exist！'],
    ['a queue of another topic', { queueId: 2, offsetStart: 0, offsetEnd: 50 }, 'queueId_2_is_not_exist！'],
  ]
  for (const [what, request, msg] of refusals) {
    test(`refuses ${what}`, async () => {
      await createTopic(service, 't1')
      await createTopic(service, 't2')
      const asked =
        typeof request === 'string' ? request : { ...base, topicName: 't1', consumerGroupName: 'g1', ...request }
      const { time, serverIp, ...answer } = await service.call('pullData', asked)
      assert.deepEqual(answer, { suc: false, msg })
    })
  }

  test('of an unknown topic is refused', async () => {
    const request = { queueId: 1, offsetStart: 0, offsetEnd: 50, topicName: 't9' }
    assert.equal((await service.call('pullData', request)).msg, 'queueId_1_is_not_exist！')
  })

  test('names the current version of its group', async () => {
    const { queueIds } = await consume(service)
    const request = { queueId: queueIds[0], offsetStart: 0, offsetEnd: 50, topicName: 't1', consumerGroupName: 'g1' }
    const before = (await service.call('pullData', request)).version
    await service.call('subscribe', { threadSize: 9 }, { groupName: 'g1', topicName: 't1' })
    assert.equal((await service.call('pullData', request)).version, (before ?? 0) + 1)
  })

  test('of a group that does not exist is served without a version', async () => {
    const [queueId] = await createTopic(service, 't1')
    const request = { queueId, offsetStart: 0, offsetEnd: 50, topicName: 't1', consumerGroupName: 'nobody' }
    const { suc, version } = await service.call('pullData', request)
    assert.deepEqual([suc, version], [true, undefined])
  })

  test('is served to a consumer that owns nothing, as PMQ serves it', async () => {
    const [queueId = 0] = await createTopic(service, 't1')
    await register(service)
    await publish(service, ['a'])
    assert.equal((await pull(service, queueId, 0, 50)).length, 1)
  })
})

suite('a pull by size', () => {
  const pullBatches = async (queueId: number, offsetStart: number, more: object = {}) => {
    const request = { queueId, offsetStart, topicName: 't1', maxBytes: 1_000_000, ...more }
    const { suc, msg, msgs, batches } = await service.call('pullData', request)
    assert.equal(suc, true, msg)
    assert.equal(msgs, undefined)
    assert.ok(batches)
    return batches
  }

  test('is answered with whole batches, without empty fields', async () => {
    const [queueId = 0] = await createTopic(service, 't1')
    await service.call('publish', { topicName: 't1', msgs: [{ body: 'a', tag: '', head: null }, { body: '' }] })
    const time = service.clock.now()
    assert.deepEqual(await pullBatches(queueId, 0), [{ offset: 1, time, msgs: [{ body: 'a' }, { body: '' }] }])
  })

  test('begins with the batch that its position is inside of', async () => {
    const [queueId = 0] = await createTopic(service, 't1')
    await publish(service, ['a', 'b', 'c'])
    await publish(service, ['d'])
    assert.deepEqual(
      (await pullBatches(queueId, 2)).map(batch => [batch.offset, batch.msgs.length]),
      [
        [1, 3],
        [4, 1],
      ],
    )
  })

  test('gets one batch at least, however small its size', async () => {
    const [queueId = 0] = await createTopic(service, 't1')
    for (const body of ['a'.repeat(5000), 'b']) await publish(service, [body])
    assert.equal((await pullBatches(queueId, 0, { maxBytes: 1 })).length, 1)
  })

  test('is answered with an empty list at the end of the queue', async () => {
    const [queueId = 0] = await createTopic(service, 't1')
    await publish(service, ['a'])
    assert.deepEqual(await pullBatches(queueId, 1), [])
  })

  test('is not held where waiting is paid for', async () => {
    const [queueId = 0] = await createTopic(service, 't1')
    assert.deepEqual(await pullBatches(queueId, 0, { waitMs: 5000 }), [])
  })
})

suite('a pull that is held', () => {
  let held: Service
  let queueId = 0
  beforeEach(async () => {
    held = openService({ settings: { pullHoldMs: 10_000 } })
    queueId = (await consume(held)).queueIds[0] ?? 0
  })
  afterEach(() => held.close())

  async function pullAndHold(waitMs: number) {
    // What has happened before is told by now.
    held.clock.advance(announceGapMs)
    await turn()
    const request = { queueId, offsetStart: 0, topicName: 't1', consumerGroupName: 'g1', maxBytes: 1000, waitMs }
    const state = { answer: held.call('pullData', request), isAnswered: false }
    state.answer.then(() => {
      state.isAnswered = true
    })
    await turn()
    return state
  }

  test('is answered as soon as there is a message', async () => {
    const state = await pullAndHold(5000)
    assert.equal(state.isAnswered, false)
    await publish(held, ['a'])
    assert.equal((await state.answer).batches?.length, 1)
  })

  test('is answered as soon as its group changes, with the new version', async () => {
    const state = await pullAndHold(5000)
    await held.call('subscribe', { threadSize: 9 }, { groupName: 'g1', topicName: 't1' })
    const { version } = await held.call('getGroup', undefined, { groupName: 'g1' })
    const answer = await held.pass(state.answer)
    assert.deepEqual([answer.version, answer.batches], [version, []])
  })

  test('is answered empty when its time is over', async () => {
    const state = await pullAndHold(5000)
    held.clock.advance(4_999)
    await turn()
    assert.equal(state.isAnswered, false)
    held.clock.advance(1)
    assert.deepEqual((await state.answer).batches, [])
  })

  test('is answered at once when there is a message', async () => {
    await publish(held, ['a'])
    assert.equal((await pullAndHold(5000)).isAnswered, true)
  })

  test('is answered at once when it does not ask to be held', async () => {
    assert.equal((await pullAndHold(0)).isAnswered, true)
  })
})

suite('an answer fits into what a Lambda may give, and leads through all', () => {
  const count = 40
  const textLength = 80_000
  const texts: [string, string][] = [
    ['three bytes a character', '漢'],
    ['four bytes for two characters', '😀'],
    ['quotes, which are escaped twice', '"'],
    ['control characters', '\u0001'],
    ['half surrogate pairs', '\ud800'],
  ]
  for (const [what, unit] of texts) {
    test(what, async () => {
      const large = openService({ settings: { compression: 'fast' } })
      const [queueId] = await createTopic(large, 't1')
      const body = unit.repeat(textLength / (JSON.stringify(unit).length - 2))
      for (let i = 0; i < count; i++) await large.call('publish', { topicName: 't1', msgs: [{ body }] })
      for (const by of ['size', 'window']) {
        let at = 0
        for (let pulls = 0; pulls < count; pulls++) {
          const range = by === 'size' ? { maxBytes: 4 * 1024 * 1024 } : { offsetEnd: at + 1000 }
          // It is here that an answer which is too large is refused.
          const { msgs, batches } = await large.call('pullData', {
            queueId,
            offsetStart: at,
            topicName: 't1',
            ...range,
          })
          at += (msgs ?? batches ?? []).length
        }
        assert.equal(at, count, by)
      }
      await large.close()
    })
  }
})
