import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { assignQueues } from '../../core/group/assign.ts'

const topicNames = ['a', 'b', 'c', 'd']
const members = fc
  .array(fc.subarray(topicNames), { maxLength: 6 })
  .map(sets => sets.map((topics, i) => ({ consumerId: i + 1, topicNames: topics })))
const queues = fc
  .array(fc.constantFrom(...topicNames), { maxLength: 16 })
  .map(topics => topics.map((topicName, i) => ({ queueId: i + 1, topicName })))
const owners = fc.array(fc.nat(8), { maxLength: 16 })

// What is assigned is compared with what would be assigned, to see whether a rebalance is owed: else it would be for ever.
test('an assignment made from whatever was before is left as it is by the next rebalance', () => {
  fc.assert(
    fc.property(members, queues, owners, (all, wanted, before) => {
      const current = new Map(before.map((consumerId, i) => [i + 1, consumerId]))
      const once = assignQueues(all, wanted, current)
      assert.deepEqual(assignQueues(all, wanted, once), once)
    }),
    { numRuns: 500 },
  )
})
