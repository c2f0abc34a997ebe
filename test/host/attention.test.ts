import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createAttention } from '../../bin/host/attention.ts'

describe('what the host calls an operator to', () => {
  const ordersWait = { groupName: 'billing', topicNames: ['orders'] }
  const reportOf = (...unhandled: (typeof ordersWait)[]) => ({
    groups: 1,
    topics: 0,
    unhandled,
    stalled: [],
    failed: [],
  })

  test('is said when it begins, and again when it comes back', () => {
    const said: string[] = []
    const attend = createAttention(text => said.push(text))
    for (const report of [reportOf(), reportOf(ordersWait), reportOf(ordersWait)]) attend(report)
    assert.deepEqual(said, ['no running consumer of group billing handles topic orders: its messages wait'])
    for (const report of [reportOf(), reportOf(ordersWait)]) attend(report)
    assert.equal(said.length, 2)
  })
})
