import assert from 'node:assert/strict'
import { test } from 'node:test'
import { consumerCopyName } from '../../core/group/copy-names.ts'
import { tick } from '../../core/tick/tick.ts'
import { base, createTopic, register } from '../wire/scene.ts'
import { openService } from '../wire/service.ts'

const hourMs = 3_600_000

test('the lag of a broadcast group is by each measure that of the member who is worst off by it', async () => {
  const service = openService({ settings: { sessionTimeoutMs: 1_000 * hourMs } })
  const { core, clock } = service
  core.looks.isDue = () => true
  const [one = 0, two = 0] = await createTopic(service, 'orders', 2)
  await service.call('createGroup', { name: 'mirrors', mode: 'broadcast' })
  await service.call('subscribe', {}, { groupName: 'mirrors', topicName: 'orders' })
  const publish = (queueId: number, count: number) =>
    service.call('publish', {
      topicName: 'orders',
      msgs: Array.from({ length: count }, () => ({ body: 'm', partitionInfo: { queueId } })),
    })
  /** Has a member commit all of a queue. */
  const finish = async (consumerId: number, queueId: number, offset: number) => {
    const snapshot = await core.store.readGroup(consumerCopyName('mirrors', consumerId))
    const place = snapshot?.offsets.find(each => each.queueId === queueId)
    assert.ok(place)
    const { groupName, queueOffsetId, offsetVersion } = place
    const commit = { groupName, queueOffsetId, offsetVersion, offset, release: false, nowMs: clock.now() }
    assert.equal((await core.store.commitOffset(commit)).outcome, 'advanced')
  }
  const members: number[] = []
  for (const name of ['a', 'b']) {
    const consumerId = await register(service, name)
    members.push(consumerId)
    await service.call('registerConsumerGroup', { ...base, consumerId, consumerGroupNames: { mirrors: ['orders'] } })
  }
  const [a = 0, b = 0] = members

  // One message is old, and a has not read it; five are new, and b has not.
  await publish(one, 1)
  await finish(b, one, 1)
  clock.advance(150 * hourMs)
  await publish(two, 5)
  await finish(a, two, 5)
  clock.advance(hourMs)
  const [lag] = (await tick(core)).lags
  assert.partialDeepStrictEqual(lag, {
    messages: 5,
    oldestAgeMs: 151 * hourMs,
    retentionMs: 168 * hourMs,
    retentionLeftMs: 17 * hourMs,
    lost: 0,
  })
  const { alarms } = await service.call('listAlarms', {})
  assert.partialDeepStrictEqual(alarms, [{ kind: 'retention', groupName: 'mirrors', topicName: 'orders' }])
  await service.close()
})
