import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Notice } from '../../core/notices.ts'
import { tick } from '../../core/tick/tick.ts'
import { createTopic } from '../wire/scene.ts'
import { openService, type Service } from '../wire/service.ts'

const minuteMs = 60_000

describe('an alarm of a group that nobody runs, and in which nothing has happened for hours', () => {
  let service: Service
  let raised: Notice[]
  beforeEach(() => {
    service = openService()
    raised = []
    service.core.bus.tell = async notice => {
      if (notice.type === 'AlarmRaised') raised.push(notice)
    }
  })
  afterEach(() => service.close())

  async function minutes(count: number, until = () => false): Promise<number> {
    for (let minute = 1; minute <= count; minute++) {
      service.clock.advance(minuteMs)
      assert.deepEqual((await tick(service.core)).failed, [])
      if (until()) return minute
    }
    return count
  }
  /** After how many minutes an alarm is raised of messages that come at a bad time: just after a look. */
  async function raisedAfter({ topic = {}, subscription = {}, hours = 6 }): Promise<number> {
    await createTopic(service, 'orders')
    await service.call('updateTopic', topic, { topicName: 'orders' })
    await service.call('createGroup', { name: 'billing' })
    await service.call('subscribe', subscription, { groupName: 'billing', topicName: 'orders' })
    await minutes(hours * 60)
    let looked = 0
    for (let i = 0; i < 61 && looked === 0; i++) {
      service.clock.advance(minuteMs)
      looked = (await tick(service.core)).looked
    }
    assert.equal(looked, 1)
    const msgs = Array.from({ length: 9 }, () => ({ body: 'm' }))
    await service.call('publish', { topicName: 'orders', msgs })
    return minutes(100_000, () => raised.length > 0)
  }

  test('is raised a minute after a message has waited for longer than the subscription allows', async () => {
    assert.equal(await raisedAfter({ subscription: { maxLagSeconds: 20 * 60 } }), 21)
  })

  test('is raised a minute after a message has waited for longer than the topic allows', async () => {
    assert.equal(await raisedAfter({ topic: { maxLagSeconds: 2 * 60 } }), 3)
  })

  test('is raised within five minutes where too many messages wait', async () => {
    const minute = await raisedAfter({ subscription: { maxLag: 8 } })
    assert.ok(minute <= 5, `${minute}`)
  })

  test('is raised when a fifth of retention is left, not when it is over', async () => {
    const { retentionMs } = await service.call('createTopic', { name: 'short', queues: 1, retentionMs: 60 * minuteMs })
    await service.call('createGroup', { name: 'billing' })
    await service.call('subscribe', {}, { groupName: 'billing', topicName: 'short' })
    for (let round = 0; round < 10; round++) {
      await minutes(180 + 7 * round)
      await service.call('publish', { topicName: 'short', msgs: [{ body: 'm' }] })
      const minute = await minutes(60, () => raised.length > round)
      assert.equal(minute, (retentionMs * 0.8) / minuteMs + 1)
      await service.call('resetOffsets', { of: 'all', to: 'end' }, { groupName: 'billing' })
    }
  })
})
