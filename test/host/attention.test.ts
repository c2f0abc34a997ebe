import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createAlarmVoice, createAttention, createObituary } from '../../bin/host/attention.ts'

describe('what the host calls an operator to', () => {
  const ordersWait = { groupName: 'billing', topicNames: ['orders'] }
  const reportOf = (...unhandled: (typeof ordersWait)[]) => ({ unhandled })

  test('is said when it begins, and again when it comes back', () => {
    const said: string[] = []
    const attend = createAttention(text => said.push(text))
    for (const report of [reportOf(), reportOf(ordersWait), reportOf(ordersWait)]) attend(report)
    assert.deepEqual(said, ['no running consumer of group billing handles topic orders: its messages wait'])
    for (const report of [reportOf(), reportOf(ordersWait)]) attend(report)
    assert.equal(said.length, 2)
  })

  test('is an alarm when it is raised, and when it is over', () => {
    const said: string[] = []
    const sayAlarm = createAlarmVoice(text => said.push(text))
    const alarm = { kind: 'lag', groupName: 'billing', topicName: 'orders', facts: {}, raisedAtMs: 1 } as const
    sayAlarm({ type: 'AlarmRaised', alarm, text: 'billing is behind' })
    sayAlarm({ type: 'QueueAppended', topicName: 'orders', queueId: 1 })
    sayAlarm({ type: 'AlarmCleared', alarm: { ...alarm, clearedAtMs: 2 }, text: 'billing has caught up' })
    assert.deepEqual(said, ['billing is behind', 'over: billing has caught up'])
  })

  test('are new dead letters, once at the next tick, with how many there are', () => {
    const said: string[] = []
    const { note, tell } = createObituary(text => said.push(text))
    tell()
    note({ groupName: 'billing', topicName: 'orders', count: 1 })
    tell()
    note({ groupName: 'billing', topicName: 'orders', count: 1_000 })
    note({ groupName: 'audit', topicName: 'orders', count: 1 })
    note({ groupName: 'billing', topicName: 'orders', count: 1 })
    for (const _ of [1, 2]) tell()
    assert.deepEqual(said, [
      '1 new dead letter of topic orders that group billing has failed to handle',
      '1001 new dead letters of topic orders that group billing has failed to handle',
      '1 new dead letter of topic orders that group audit has failed to handle',
    ])
  })
})
