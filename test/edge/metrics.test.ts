import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Lag } from '../../core/lag.ts'
import { reportDeadLetters } from '../../functions/edge/dead-letters.ts'
import type { LagMetrics } from '../../functions/edge/env.ts'
import { createLagMetrics } from '../../functions/edge/lag-metrics.ts'
import { reportTick } from '../../functions/edge/metrics.ts'

const quiet = { unhandled: [] }

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
    const lines = linesOf(t, { unhandled })
    assert.equal(lines.length, 1)
    const { _aws, ...values } = JSON.parse(lines[0] ?? '')
    const Metrics = [{ Name: 'UnhandledTopics', Unit: 'Count' }]
    assert.deepEqual(_aws.CloudWatchMetrics, [{ Namespace: 'PMQ', Dimensions: [['service']], Metrics }])
    assert.deepEqual(values, {
      service: 'Stack',
      UnhandledTopics: 3,
      whichUnhandledTopics: 'billing: orders; billing: bills; audit: orders',
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

describe('the metrics of lag', () => {
  const lag = {
    groupName: 'billing',
    topicName: 'orders',
    isFailTopic: false,
    messages: 7,
    oldestAgeMs: 3_400,
    lost: 0,
    stalledQueues: 0,
  }
  const none = { ...lag, messages: 0, oldestAgeMs: 0 }
  const linesFor = (t: TestContext, mode: LagMetrics, ...rounds: Lag[][]) => {
    const lines: string[] = []
    t.mock.method(console, 'log', (text: string) => lines.push(text))
    const report = createLagMetrics('Stack', mode)
    for (const lags of rounds) report(lags, 1_704_112_215_007)
    t.mock.restoreAll()
    return lines.map(line => JSON.parse(line))
  }

  test('are a line for each group and topic that CloudWatch reads', t => {
    const [line, ofFailures, ...more] = linesFor(t, 'behind', [lag, { ...lag, isFailTopic: true }])
    assert.deepEqual(more, [])
    const Metrics = [
      { Name: 'Lag', Unit: 'Count' },
      { Name: 'OldestUnreadAge', Unit: 'Seconds' },
    ]
    const CloudWatchMetrics = [{ Namespace: 'PMQ', Dimensions: [['service', 'group', 'topic']], Metrics }]
    assert.deepEqual(line, {
      _aws: { Timestamp: 1_704_112_215_007, CloudWatchMetrics },
      service: 'Stack',
      group: 'billing',
      topic: 'orders',
      Lag: 7,
      OldestUnreadAge: 3,
    })
    assert.equal(ofFailures.topic, 'orders (failed)')
  })

  test('are of what is behind, and once when it is not any more; or of all, or of none', t => {
    const counts = (mode: LagMetrics) => linesFor(t, mode, [none], [lag], [lag], [none], [none]).map(({ Lag }) => Lag)
    assert.deepEqual(counts('behind'), [7, 7, 0])
    assert.deepEqual(counts('all'), [0, 7, 7, 0, 0])
    assert.deepEqual(counts('none'), [])
  })
})
