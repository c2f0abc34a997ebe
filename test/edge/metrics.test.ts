import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { reportDeadLetters } from '../../functions/edge/dead-letters.ts'
import { reportTick } from '../../functions/edge/metrics.ts'

const quiet = { groups: 1, topics: 0, unhandled: [], stalled: [], failed: [] }

/** The lines that a report writes. */
function linesOf(t: TestContext, report: Parameters<typeof reportTick>[0]): string[] {
  const lines: string[] = []
  // The library writes past the console of the process, to a console of its own.
  t.mock.method(process.stdout, 'write', (text: string) => {
    lines.push(text)
    return true
  })
  reportTick(report, 'Stack')
  t.mock.restoreAll()
  return lines
}

describe('the metrics of a tick', () => {
  test('are one line that CloudWatch reads, with how much there is, and which', t => {
    const unhandled = [
      { groupName: 'billing', topicNames: ['orders', 'bills'] },
      { groupName: 'audit', topicNames: ['orders'] },
    ]
    const stalled = [{ groupName: 'billing', topicName: 'notes', queueId: 7 }]
    const lines = linesOf(t, { ...quiet, unhandled, stalled })
    assert.equal(lines.length, 1)
    const { _aws, ...values } = JSON.parse(lines[0] ?? '')
    const Metrics = ['UnhandledTopics', 'StalledQueues'].map(Name => ({ Name, Unit: 'Count' }))
    assert.deepEqual(_aws.CloudWatchMetrics, [{ Namespace: 'PMQ', Dimensions: [['service']], Metrics }])
    assert.deepEqual(values, {
      service: 'Stack',
      UnhandledTopics: 3,
      StalledQueues: 1,
      whichUnhandledTopics: 'billing: orders; billing: bills; audit: orders',
      whichStalledQueues: 'billing: queue 7 of notes',
    })
  })

  test('are nothing where all is well', t => {
    assert.deepEqual(linesOf(t, quiet), [])
  })
})

describe('the metric of dead letters', () => {
  test('is a line that CloudWatch reads, with group and topic beside it', t => {
    const lines: string[] = []
    t.mock.method(console, 'log', (text: string) => lines.push(text))
    reportDeadLetters({ groupName: 'billing', topicName: 'orders', count: 3 }, 'Stack', 1_704_112_215_007)
    t.mock.restoreAll()
    assert.equal(lines.length, 1)
    const Metrics = [{ Name: 'DeadLetters', Unit: 'Count' }]
    assert.deepEqual(JSON.parse(lines[0] ?? ''), {
      _aws: {
        Timestamp: 1_704_112_215_007,
        CloudWatchMetrics: [{ Namespace: 'PMQ', Dimensions: [['service']], Metrics }],
      },
      service: 'Stack',
      DeadLetters: 3,
      groupName: 'billing',
      topicName: 'orders',
    })
  })
})
