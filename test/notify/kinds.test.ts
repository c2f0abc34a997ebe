import assert from 'node:assert/strict'
import { afterEach, suite, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { clearAlarm, raiseAlarm } from '../../core/alarms/alarms.ts'
import { publicTargets } from '../../core/notify/network-policy.ts'
import { callbackUrlOf } from '../../functions/edge/notify/callbacks.ts'
import type { InvokeAnswer, InvokeRequest } from '../../functions/edge/push/invoke.ts'
import { base, register } from '../wire/scene.ts'
import { hints, openScene, serveTarget } from './notify-setup.ts'

let scene: Awaited<ReturnType<typeof openScene>>
const open = async (...args: Parameters<typeof openScene>) => {
  scene = await openScene(...args)
  return scene
}
afterEach(() => scene.close())

suite('a Lambda function of a group', () => {
  const openLambda = async (answer: () => InvokeAnswer) => {
    const invoked: InvokeRequest[] = []
    const async = async (request: InvokeRequest) => {
      invoked.push(request)
      return answer()
    }
    const opened = await open({ invokes: { async, sync: async () => assert.fail('nobody waits for it') } })
    await opened.put('hook', { kind: 'lambda', functionName: 'f' })
    return { ...opened, invoked }
  }

  test('is invoked with the hint, which its consumer takes', async () => {
    const { publish, settle, invoked, queueIds, deliveries } = await openLambda(() => ({
      outcome: 'returned',
      payload: '',
    }))
    await publish()
    await settle()
    assert.deepEqual(
      invoked.map(({ functionName, payload }) => [functionName, JSON.parse(payload)]),
      [['f', hints(queueIds[0] ?? 0)]],
    )
    assert.partialDeepStrictEqual(await deliveries(), [{ outcome: 'succeeded', what: 'hint' }])
  })

  test('is invoked again, where Lambda has not taken the event', async () => {
    let answer: InvokeAnswer = { outcome: 'not_started', error: 'TooManyRequestsException: rate', retryAfterMs: 30_000 }
    const { publish, settle, pass, invoked, target, deliveries } = await openLambda(() => answer)
    await publish()
    await settle()
    assert.partialDeepStrictEqual((await target()).state, { status: 'failing', failures: 1 })
    assert.equal((await deliveries())[0]?.error, 'TooManyRequestsException: rate')
    await pass(29_000)
    assert.equal(invoked.length, 1)
    answer = { outcome: 'returned', payload: '' }
    await pass(2_000)
    assert.equal(invoked.length, 2)
    assert.equal((await target()).state.status, 'active')
  })
})

suite('PMQ clients of a group', () => {
  const name = (port: number, pid = 1) => `127.0.0.1|${pid}|5298|${port}`
  const network = { ...publicTargets, callbackNetworks: ['127.0.0.0/8'] }
  const join = async (consumerName: string, groupName = 'billing') => {
    const consumerId = await register(scene.service, consumerName)
    await scene.service.call('registerConsumerGroup', {
      ...base,
      consumerId,
      consumerGroupNames: { [groupName]: ['orders'] },
    })
    return consumerId
  }

  test('are called back at the address and port of their names: each for its own queues', async () => {
    const { put, publish, settle, service, queueIds, deliveries } = await open({ network })
    const clients = [await serveTarget(), await serveTarget()]
    for (const [i, { port }] of clients.entries()) await join(name(port, i))
    await put('clients', { kind: 'callback', minGapMs: 0 })
    const { queues } = await service.call('getGroup', undefined, { groupName: 'billing' })
    for (const queueId of queueIds) await publish(queueId)
    await settle()
    for (const { got, port } of clients) {
      const own = queues.filter(queue => queue.topicName === 'orders' && queue.consumerName?.endsWith(`|${port}`))
      assert.deepEqual(
        got.map(({ json }) => json),
        own.map(({ queueId }) => hints(queueId)),
      )
      assert.equal(got[0]?.headers['webhook-signature'], undefined)
    }
    assert.deepEqual(await deliveries('clients'), [], 'what goes well with clients is nobody to be told')
  })

  test('that do not answer keep nobody waiting for their next word, and are tried again after 5 s', async () => {
    const { put, publish, settle, clock, deliveries, target } = await open({ network })
    const client = await serveTarget()
    await join(name(client.port))
    await put('clients', { kind: 'callback', minGapMs: 0 })
    client.close()
    await publish()
    await settle()
    const [failure, ...more] = await deliveries('clients')
    assert.deepEqual(more, [])
    assert.match(failure?.error ?? '', new RegExp(`^http://127.0.0.1:${client.port}/mq/client/notify: `))
    clock.advance(1_000)
    await publish()
    await settle()
    assert.equal((await deliveries('clients')).length, 1)
    clock.advance(5_000)
    await publish()
    await settle()
    assert.equal((await deliveries('clients')).length, 2)
    assert.equal((await target('clients')).state.status, 'active')
  })

  test('are called nowhere but in the networks that the operator has named', async () => {
    const { put, publish, settle, deliveries } = await open({
      network: { ...network, callbackNetworks: ['10.0.0.0/8'] },
    })
    const client = await serveTarget()
    await join(name(client.port))
    await put('clients', { kind: 'callback' })
    await publish()
    await settle()
    assert.equal(client.got.length, 0)
    assert.match((await deliveries('clients'))[0]?.error ?? '', /http/)
  })

  test('of a broadcast group are all called, each by the name of its copy', async () => {
    const { put, publish, settle, queueIds } = await open({ mode: 'broadcast', network })
    const clients = [await serveTarget(), await serveTarget()]
    const ids: number[] = []
    for (const [i, { port }] of clients.entries()) ids.push(await join(name(port, i)))
    await put('clients', { kind: 'callback' })
    await publish()
    await settle()
    assert.deepEqual(
      clients.map(({ got }) => got.map(({ json }) => json)),
      ids.map(id => [{ msgNotifyDtos: [{ queueId: queueIds[0], consumerGroupName: `billing~${id}` }] }]),
    )
  })

  test('have an address only where their name has one', async () => {
    await open()
    const urls: [string, string | undefined][] = [
      ['10.1.1.1|28959|5298|8087', 'http://10.1.1.1:8087/mq/client/notify'],
      ['fd00::1|1|2|80', 'http://[fd00::1]:80/mq/client/notify'],
      ['10.1.1.1|28959|5298', undefined],
      ['10.1.1.1|28959|5298-k3m9xa', undefined],
      ['10.1.1.1|28959|5298|0', undefined],
      ['10.1.1.1|28959|5298|65536', undefined],
      ['10.1.1.1|28959|5298|80/../x', undefined],
      ['evil.example|28959|5298|80', undefined],
      ['', undefined],
    ]
    for (const [consumerName, url] of urls) assert.equal(callbackUrlOf({ consumerName }), url)
  })
})

suite('a push group', () => {
  const committed = async () => {
    scene.clock.advance(200)
    const { queues } = await scene.service.call('getGroup', undefined, { groupName: 'billing' })
    return queues.filter(({ topicName }) => topicName === 'orders').reduce((sum, { offset }) => sum + offset, 0)
  }
  const bodiesOf = (got: { json: unknown }[]) =>
    got.flatMap(({ json }) => (json as { msgs: { body: string }[] }).msgs.map(({ body }) => body))
  const suc = (outgoing: { end(text: string): unknown }) => void outgoing.end('{"suc":true,"failIds":[]}')

  test('has its messages posted, committed, and what failed again when it is due', async () => {
    const { put, publish, settle, pass, deliveries } = await open({
      mode: 'claimed',
      settings: { retryDelaySeconds: 60 },
    })
    let failsOnce = true
    const hook = await serveTarget(({ json }) => outgoing => {
      const [{ id, body } = assert.fail()] = (json as { msgs: { id: number; body: string }[] }).msgs
      const failIds = body === 'm1' && failsOnce ? [id] : []
      failsOnce &&= failIds.length === 0
      outgoing.end(JSON.stringify({ suc: true, failIds }))
    })
    await put('hook', { url: hook.url, delivers: 'messages' })
    await publish(undefined, 3)
    await settle()
    assert.deepEqual(bodiesOf(hook.got).toSorted(), ['m0', 'm1', 'm2'])
    assert.equal(await committed(), 3)
    hook.got.length = 0
    await pass(50_000)
    assert.deepEqual(hook.got, [])
    await pass(15_000)
    assert.deepEqual(bodiesOf(hook.got), ['m1'])
    const [newest] = await deliveries()
    assert.partialDeepStrictEqual(newest, { what: 'messages', messages: 1, outcome: 'succeeded', status: 200 })
  })

  test('whose target is away is left alone with pauses, and has lost nothing and counted nothing when it is back', async () => {
    const { put, publish, settle, pass, target } = await open({ mode: 'claimed', settings: { retryCount: 0 } })
    let isAway = true
    const hook = await serveTarget(() => (isAway ? 503 : suc))
    await put('hook', { url: hook.url, delivers: 'messages' })
    await publish(undefined, 3)
    await settle()
    assert.partialDeepStrictEqual((await target()).state, { status: 'failing', failures: 1 })
    await publish(undefined, 2)
    await settle()
    await pass(60_000)
    assert.ok(hook.got.length >= 3 && hook.got.length <= 8, `${hook.got.length} requests`)
    assert.equal(await committed(), 0)
    isAway = false
    hook.got.length = 0
    await pass(120_000)
    assert.deepEqual(bodiesOf(hook.got).toSorted(), ['m0', 'm0', 'm1', 'm1', 'm2'])
    assert.equal(await committed(), 5)
    assert.equal((await target()).state.status, 'active')
  })

  test('is pushed no more when its target is disabled', async () => {
    const { put, publish, settle, pass, service } = await open({ mode: 'claimed' })
    const hook = await serveTarget(() => suc)
    await put('hook', { url: hook.url, delivers: 'messages' })
    await service.call('disableTarget', undefined, { groupName: 'billing', targetName: 'hook' })
    await publish()
    await settle()
    await pass(60_000)
    assert.equal(hook.got.length, 0)
    await service.call('enableTarget', undefined, { groupName: 'billing', targetName: 'hook' })
    await settle()
    assert.deepEqual(bodiesOf(hook.got), ['m0'])
  })
})

suite('a webhook of alarms', () => {
  const behind = async () => {
    const { service, core, queueIds } = scene
    const alarm = { kind: 'lag', groupName: 'billing', topicName: 'orders' } as const
    assert.ok(queueIds.length > 0)
    await raiseAlarm(core, alarm, { messages: 7, oldestAgeSeconds: 3 }, undefined)
    return (await service.call('listAlarms', {})).alarms
  }
  const put = (url: string) => scene.service.call('putAlarmTarget', { url }, { targetName: 'ops' })

  test('is told once when one begins and once when it is over, signed, in words and figures', async () => {
    const { core, pass } = await open()
    const hook = await serveTarget()
    const { secret = '' } = await put(hook.url)
    await behind()
    await behind()
    await pass(5_000)
    const [alarm] = await core.store.listAlarms()
    await clearAlarm(core, alarm, { messages: 0, oldestAgeSeconds: 0 })
    await pass(5_000)
    assert.equal(hook.got.length, 2)
    const [raised, cleared] = hook.got
    assert.partialDeepStrictEqual(raised?.json, {
      type: 'AlarmRaised',
      kind: 'lag',
      groupName: 'billing',
      topicName: 'orders',
      facts: { messages: 7, oldestAgeSeconds: 3 },
      text: 'Group billing is behind in topic orders: 7 messages wait, the oldest for 3 s',
    })
    assert.partialDeepStrictEqual(cleared?.json, { type: 'AlarmCleared', kind: 'lag' })
    new Webhook(secret).verify(raised?.text ?? '', raised?.headers as Record<string, string>)
    assert.notEqual(raised?.id, cleared?.id)
  })

  test('is told again under the same id while it fails, and another one is not kept waiting by it', async () => {
    const { pass, service } = await open()
    let status = 500
    const hook = await serveTarget(() => status)
    const other = await serveTarget()
    await put(hook.url)
    await service.call('putAlarmTarget', { url: other.url }, { targetName: 'other' })
    await behind()
    await pass(60_000)
    assert.ok(hook.got.length >= 3, `${hook.got.length} tries`)
    status = 200
    await pass(600_000)
    assert.equal(new Set(hook.got.map(({ id, text }) => id + text)).size, 1)
    assert.equal(other.got.length, 1)
    const tries = hook.got.length
    await pass(3_600_000)
    assert.equal(hook.got.length, tries)
  })

  test('hears that a target of a group was disabled, and that it was enabled again', async () => {
    const { pass, publish, service, put: putTarget } = await open()
    const ops = await serveTarget()
    await put(ops.url)
    const gone = await serveTarget(() => 410)
    await putTarget('hook', { url: gone.url })
    await publish()
    await pass(5_000)
    const hook = { groupName: 'billing', targetName: 'hook' }
    assert.partialDeepStrictEqual((await service.call('listAlarms', {})).alarms, [{ kind: 'target_disabled', ...hook }])
    await service.call('enableTarget', undefined, hook)
    await service.call('disableTarget', undefined, hook)
    await pass(5_000)
    assert.deepEqual(
      ops.got.map(({ json }) => (json as { type: string }).type),
      ['AlarmRaised', 'AlarmCleared'],
    )
    assert.deepEqual((await service.call('listAlarms', {})).alarms, [])
  })
})
