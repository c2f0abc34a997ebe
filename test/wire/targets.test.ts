import assert from 'node:assert/strict'
import { afterEach, beforeEach, suite, test } from 'node:test'
import type { Settings } from '../../core/core.ts'
import type { Notice } from '../../core/notices.ts'
import { localTargets, publicTargets } from '../../core/notify/network-policy.ts'
import type { Delivery } from '../../core/notify/target.ts'
import { tricks } from '../webhook/tricks.ts'
import { createTopic } from './scene.ts'
import { openService, type Service } from './service.ts'

const group = { groupName: 'billing' }
const hook = { ...group, targetName: 'hook' }
const url = 'https://example.com/hook?key=abc'
const given = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

suite('the targets of a group', () => {
  let service: Service
  let told: Notice[]
  async function open(settings: Partial<Settings> = {}) {
    service = openService({ settings })
    told = []
    service.core.bus.tell = async notice => void told.push(notice)
    await createTopic(service, 'orders', 2)
    await service.call('createGroup', { name: 'billing' })
    await service.call('subscribe', {}, { ...group, topicName: 'orders' })
  }
  beforeEach(() => open())
  afterEach(() => service.close())

  const put = (request: object, parameters: object = hook) =>
    service.send('putTarget', request, { ...hook, ...parameters })
  const refusal = async (request: object, parameters: object = {}) => {
    const { status, json } = await put(request, parameters)
    return `${status} ${json.message}`
  }
  const notifies = async () =>
    (await Promise.all(['orders', 'billing_orders_fail'].map(name => service.core.store.readTopic(name)))).map(
      topic => topic?.notifies,
    )
  const get = () => service.call('getTarget', undefined, hook)

  test('are made with a secret, which is shown once and never again', async () => {
    const made = await service.call('putTarget', { url }, hook)
    assert.match(made.secret ?? '', /^whsec_[A-Za-z0-9+/]{43}=$/)
    const { secret, ...rest } = made
    assert.partialDeepStrictEqual(rest, {
      name: 'hook',
      kind: 'webhook',
      delivers: 'hints',
      url,
      minGapMs: 100,
      state: { status: 'active', failures: 0 },
    })
    assert.equal(rest.secrets.length, 1)
    const value = String(secret).slice(6)
    const elsewhere = [
      await get(),
      await service.call('listTargets', undefined, group),
      await service.call('putTarget', { minGapMs: 5 }, hook),
      await service.call('disableTarget', undefined, hook),
      await service.call('enableTarget', undefined, hook),
      await service.call('addTargetSecret', { secret: given }, hook),
      await service.call('getGroup', undefined, group),
      await service.call('listAudit', {}),
    ]
    for (const answer of elsewhere) {
      assert.ok(!JSON.stringify(answer).includes(value))
      assert.ok(!JSON.stringify(answer).includes(given.slice(6)))
    }
    assert.ok(!JSON.stringify(await service.call('listAudit', {})).includes('abc'), 'nor is the query of a URL')
  })

  test('take a secret that was given, and do not show it', async () => {
    const made = await service.call('putTarget', { url, secret: given }, hook)
    assert.ok(!JSON.stringify(made).includes(given.slice(6)))
    assert.equal((await service.core.store.readTargets(group))[0]?.secrets[0]?.value, given)
    for (const secret of ['whsec_', 'whsec_abc', given.slice(6), `${given}!`, `whsec_${'A'.repeat(100)}`])
      assert.match(await refusal({ url, secret }, { targetName: 'other' }), /^400 secret: must be whsec_/)
    assert.match(await refusal({ secret: given }), /^409 .*has its secrets/)
  })

  test('have several secrets while they are rotated, and one at least', async () => {
    const [first] = (await service.call('putTarget', { url }, hook)).secrets
    const added = await service.call('addTargetSecret', {}, hook)
    assert.match(added.secret ?? '', /^whsec_/)
    assert.deepEqual(
      added.target.secrets.map(({ secretId }) => secretId),
      [first?.secretId, added.secretId],
    )
    const left = await service.call('removeTargetSecret', undefined, { ...hook, secretId: first?.secretId ?? '' })
    assert.deepEqual(
      left.secrets.map(({ secretId }) => secretId),
      [added.secretId],
    )
    const last = await service.send('removeTargetSecret', undefined, { ...hook, secretId: added.secretId })
    assert.match(`${last.status} ${last.json.message}`, /^409 it is the last secret/)
    assert.equal((await service.send('removeTargetSecret', undefined, { ...hook, secretId: 'none' })).status, 404)
    for (let i = 0; i < 4; i++) await service.call('addTargetSecret', {}, hook)
    const sixth = await service.send('addTargetSecret', {}, hook)
    assert.match(`${sixth.status} ${sixth.json.message}`, /^409 .* 5 secrets; at most 5/)
  })

  test('are changed in what is given; one that is elsewhere from now on has not failed', async () => {
    await service.call('putTarget', { url }, hook)
    const [target] = await service.core.store.readTargets(group)
    assert.ok(target)
    const state = { ...target.state, failures: 3, failingSinceMs: 5, openUntilMs: 9 }
    await service.core.store.replaceTarget({ ...target, state, revision: target.revision + 1 })
    assert.partialDeepStrictEqual(await service.call('putTarget', { minGapMs: 7 }, hook), {
      url,
      minGapMs: 7,
      state: { status: 'failing', failures: 3, failingSinceMs: 5, nextTrialAtMs: 9 },
    })
    const moved = await service.call('putTarget', { url: 'https://example.org/' }, hook)
    assert.deepEqual(moved.state, { status: 'active', failures: 0 })
    assert.match(await refusal({ kind: 'lambda' }), /^409 target hook is of kind webhook/)
  })

  test('are noted at its topics from the first to the last of them', async () => {
    assert.deepEqual(await notifies(), [[], []])
    await put({ url }, { targetName: 'a' })
    await put({ url }, { targetName: 'b' })
    assert.deepEqual(await notifies(), [['billing'], ['billing']])
    await createTopic(service, 'refunds')
    await service.call('subscribe', {}, { ...group, topicName: 'refunds' })
    assert.deepEqual((await service.core.store.readTopic('refunds'))?.notifies, ['billing'])
    await service.call('removeTarget', undefined, { ...group, targetName: 'a' })
    assert.deepEqual(await notifies(), [['billing'], ['billing']])
    await service.call('disableTarget', undefined, { ...group, targetName: 'b' })
    assert.deepEqual(await notifies(), [[], []], 'who is disabled hears nothing')
    await service.call('enableTarget', undefined, { ...group, targetName: 'b' })
    assert.deepEqual(await notifies(), [['billing'], ['billing']])
    await service.call('removeTarget', undefined, { ...group, targetName: 'b' })
    assert.deepEqual(await notifies(), [[], []])
    assert.equal((await service.send('removeTarget', undefined, { ...group, targetName: 'b' })).status, 404)
  })

  test('are told of what waits already when they are made, and when they are enabled', async () => {
    const [first = 0] = (await service.call('getTopicQueueIds', { topicNames: ['orders'] })).topicQueues?.orders ?? []
    await service.call('publish', { topicName: 'orders', msgs: [{ body: 'a', partitionInfo: { queueId: first } }] })
    const waiting = [{ type: 'QueueAppended', topicName: 'orders', queueId: first, isDue: true }]
    await service.call('putTarget', { url }, hook)
    assert.deepEqual(told, waiting)
    await service.call('disableTarget', undefined, hook)
    told.length = 0
    await service.call('enableTarget', undefined, hook)
    assert.deepEqual(told, waiting)
  })

  test('go with their group', async () => {
    await put({ url })
    await service.call('removeGroup', undefined, group)
    assert.deepEqual(await service.core.store.readTargets(group), [])
    assert.deepEqual(await service.core.store.listGroupsWithTargets(), [])
    assert.equal((await service.send('listTargets', undefined, group)).status, 404)
  })

  test('are tested by word to whoever sends', async () => {
    await put({ url })
    told.length = 0
    const { deliveryId } = await service.call('testTarget', undefined, hook)
    assert.deepEqual(told, [{ type: 'TargetTest', target: { owner: group, name: 'hook' }, deliveryId }])
    assert.equal((await service.send('testTarget', undefined, { ...group, targetName: 'none' })).status, 404)
  })

  test('show what was sent to them, the newest first, page by page', async () => {
    await put({ url })
    const ref = { owner: group, name: 'hook' }
    const delivery: Omit<Delivery, 'atMs'> = {
      deliveryId: 'd',
      durationMs: 3,
      outcome: 'failed',
      what: 'hint',
      queueIds: [1],
    }
    const answer = '<script>alert(1)</script>'
    for (const atMs of [1, 2, 3]) await service.core.store.addDelivery(ref, { ...delivery, atMs, answer })
    const page = await service.call('listTargetDeliveries', { limit: 2 }, hook)
    assert.deepEqual([page.deliveries.map(({ atMs }) => atMs), page.next], [[3, 2], 2])
    assert.equal(page.deliveries[0]?.answer, answer)
    const { deliveries, next } = await service.call('listTargetDeliveries', { beforeMs: page.next, limit: 2 }, hook)
    assert.deepEqual([deliveries.map(({ atMs }) => atMs), next], [[1], undefined])
    const { headers } = await service.send('listTargetDeliveries', undefined, hook)
    assert.match(headers['content-type'] ?? '', /^application\/json/)
    const tooMany = await service.send('listTargetDeliveries', { limit: 101 }, hook)
    assert.match(`${tooMany.status} ${tooMany.json.message}`, /^400 limit/)
  })

  test('are refused where they are not public, for every trick that is known', async () => {
    for (const [trick] of tricks) assert.match(await refusal({ url: trick }), /^400 (url|the host)/, trick)
    assert.equal((await put({ url: 'https://example.com:8443/' })).status, 200)
  })

  test('are refused with what would be accepted', async () => {
    const refusals: [object, object, RegExp][] = [
      [{}, {}, /^400 a webhook needs a url, such as/],
      [{ url }, { targetName: 'a b' }, /^400 .*name of a target must be 1 to 100 characters/],
      [{ url }, { groupName: 'nobody' }, /^404 there is no group nobody/],
      [{ url, minGapMs: 3_600_001 }, {}, /^400 minGapMs.*3600000/],
      [{ url, functionName: 'f' }, {}, /^400 functionName is of targets of kind lambda/],
      [{ kind: 'lambda', functionName: 'f', url }, {}, /^400 url is of webhooks/],
      [{ kind: 'lambda' }, {}, /^400 functionName is missing; none is: the operator has named no lambdaConsumers/],
      [{ kind: 'callback' }, {}, /^400 .*no callbackNetworks/],
      [
        { url, delivers: 'messages' },
        {},
        /^409 messages are delivered in groups of mode claimed only; this one is balanced/,
      ],
      [{ url, secrets: [] }, {}, /^400 secrets/],
    ]
    for (const [request, parameters, expected] of refusals) assert.match(await refusal(request, parameters), expected)
    for (let i = 0; i < 10; i++) assert.equal((await put({ url }, { targetName: `t${i}` })).status, 200)
    assert.match(await refusal({ url }), /^409 there are 10 targets already; at most 10/)
  })

  test('are functions that the operator has named, PMQ clients where he has named networks, and messages of claimed groups', async () => {
    await service.close()
    await open({ targets: { network: { ...publicTargets, callbackNetworks: ['10.0.0.0/8'] }, functions: ['f', 'g'] } })
    assert.match(
      await refusal({ kind: 'lambda', functionName: 'h' }),
      /^400 functionName h is not allowed; accepted are f, g/,
    )
    assert.equal((await put({ kind: 'lambda', functionName: 'g' })).status, 200)
    assert.equal((await put({ kind: 'callback' }, { targetName: 'clients' })).status, 200)
    await service.call('createGroup', { name: 'claimed', mode: 'claimed' })
    await service.call('createGroup', { name: 'news', mode: 'broadcast' })
    const made = await service.call(
      'putTarget',
      { kind: 'lambda', functionName: 'g', delivers: 'messages' },
      { ...hook, groupName: 'claimed' },
    )
    assert.deepEqual([made.delivers, made.secret, made.secrets], ['messages', undefined, []])
    assert.match(
      await refusal({ kind: 'callback', delivers: 'messages' }, { groupName: 'claimed', targetName: 'x' }),
      /^400 .*must be hints/,
    )
    assert.match(await refusal({ url }, { groupName: 'news' }), /^409 in a broadcast group/)
    assert.equal((await put({ kind: 'callback' }, { groupName: 'news' })).status, 200)
    const secret = await service.send('addTargetSecret', {}, hook)
    assert.match(`${secret.status} ${secret.json.message}`, /^409 .*only webhooks are signed/)
  })

  test('may be on this machine where its operator has allowed it', async () => {
    await service.close()
    await open({ targets: { network: localTargets, functions: [] } })
    assert.equal((await put({ url: 'http://localhost:8081/hook' })).status, 200)
  })
})

suite('the targets of alarms', () => {
  test('are webhooks, with an owner of their own', async () => {
    const service = openService()
    const ops = { targetName: 'ops' }
    const made = await service.call('putAlarmTarget', { url }, ops)
    assert.deepEqual([made.delivers, made.kind], ['alarms', 'webhook'])
    assert.match(made.secret ?? '', /^whsec_/)
    assert.deepEqual(
      (await service.call('listAlarmTargets')).targets.map(({ name }) => name),
      ['ops'],
    )
    assert.equal((await service.call('disableAlarmTarget', undefined, ops)).state.status, 'disabled')
    assert.equal((await service.send('putAlarmTarget', { url, kind: 'lambda' }, ops)).status, 400)
    assert.deepEqual(await service.call('removeAlarmTarget', undefined, ops), { removed: 'ops' })
    assert.equal((await service.send('getAlarmTarget', undefined, ops)).status, 404)
    await service.close()
  })
})
