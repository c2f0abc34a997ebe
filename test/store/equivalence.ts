import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Store } from '../../core/store.ts'
import { openSqliteStore } from '../../store/sqlite/open.ts'
import { batchOf, consumerOf, groupOf, memberOf, offsetOf, queueOf, subscriptionOf, topicOf } from './contract.ts'

/**
 * Random sequences of operations, run on the store under test and on a reference (SQLite in memory): every answer has to
 * be the same, and so everything that can be read afterwards. Names and queues are drawn from a few, so that operations
 * meet; each run has its own, so that runs do not.
 */
type Command = (store: Store, names: Names) => Promise<unknown>
type Names = { group: (n: number) => string; topic: (n: number) => string; queue: (n: number) => number; run: number }

const few = fc.integer({ min: 1, max: 2 })
const offset = fc.integer({ min: 0, max: 12 })
const version = fc.integer({ min: 0, max: 3 })

const command = <T extends unknown[]>(
  label: string,
  args: { [K in keyof T]: fc.Arbitrary<T[K]> },
  run: (...drawn: T) => Command,
) => fc.tuple<T>(...args).map(drawn => ({ label: `${label}(${drawn.join(', ')})`, run: run(...drawn) }))

const commands = fc.oneof(
  command(
    'append',
    [few, fc.integer({ min: 1, max: 4 }), fc.boolean()],
    (q, count, again) =>
      async (store, { queue }) => {
        const [tail] = await store.readHeaders(backward(queue(q)))
        const base = tail === undefined ? 1 : again ? tail.base : tail.base + tail.count
        return store.appendBatch(batchOf(queue(q), base, { count }))
      },
  ),
  command(
    'readBatches',
    [few, offset, few],
    (q, fromOffset, maxBatches) =>
      async (store, { queue }) =>
        plain(await store.readBatches({ queueId: queue(q), fromOffset, maxBatches, maxBytes: 1e6, consistent: true })),
  ),
  command('readBatchAt', [few, offset], (q, at) => async (store, { queue }) => {
    const found = await store.readBatchAt(queue(q), at, { consistent: true })
    return found && plain([found])
  }),
  command(
    'createTopic',
    [few],
    n =>
      (store, { topic }) =>
        store.createTopic(topicOf(topic(n)), [queueOf(topic(n), 1)]),
  ),
  command(
    'addQueue',
    [few, few],
    (n, q) =>
      (store, { topic }) =>
        store.addQueue(queueOf(topic(n), q)),
  ),
  command(
    'checkpoint',
    [few, few, offset],
    (n, q, next) =>
      (store, { topic }) =>
        store.checkpointQueue(topic(n), q, next),
  ),
  command(
    'createGroup',
    [few],
    n =>
      (store, { group }) =>
        store.createGroup(groupOf(group(n))),
  ),
  command(
    'subscribe',
    [few, few],
    (g, t) =>
      (store, { group, topic }) =>
        store.createSubscription(subscriptionOf(group(g), topic(t))),
  ),
  command(
    'updateSubscription',
    [few, few, few],
    (g, t, threadSize) =>
      (store, { group, topic }) =>
        store.updateSubscription(group(g), topic(t), {
          threadSize,
          consumerBatchSize: 1,
          pullBatchSize: 10,
          maxPullTimeSeconds: 1,
        }),
  ),
  command(
    'addOffset',
    [few, few],
    (g, id) =>
      (store, { group }) =>
        store.addQueueOffset(offsetOf(group(g), id)),
  ),
  command(
    'ask',
    [few],
    g =>
      (store, { group }) =>
        store.askRebalance(group(g)),
  ),
  command(
    'raiseMeta',
    [few],
    g =>
      (store, { group }) =>
        store.raiseMeta(group(g)),
  ),
  command(
    'finish',
    [few, version, fc.boolean(), version],
    (g, asked, moved, expectedRbVersion) =>
      (store, { group }) =>
        store.finishRebalance({ groupName: group(g), asked, moved, expectedRbVersion, nowMs: 5 }),
  ),
  command('move', [few, few, few, fc.boolean()], (g, id, consumerId, leaves) => async (store, { group }) => {
    // From the state that is there, so that chains of moves come about; stale movers are the contract's own tests.
    const snapshot = await store.readGroup(group(g))
    const offset = snapshot?.offsets.find(found => found.queueOffsetId === id)
    const leaving = { nextConsumerId: consumerId, sinceMs: 9 }
    return store.moveQueue({
      groupName: group(g),
      queueOffsetId: id,
      expectedOffsetVersion: offset?.offsetVersion ?? 0,
      expectedConsumerId: offset?.consumerId ?? 0,
      expectedNextConsumerId: offset?.nextConsumerId,
      rbVersion: (snapshot?.group.rbVersion ?? 0) + 1,
      ...(leaves && offset ? { consumerId: offset.consumerId, leaving } : { consumerId }),
    })
  }),
  command(
    'commit',
    [few, few, version, offset, fc.boolean()],
    (g, id, offsetVersion, to, release) =>
      (store, { group }) =>
        store.commitOffset({ groupName: group(g), queueOffsetId: id, offsetVersion, offset: to, release, nowMs: 11 }),
  ),
  command(
    'register',
    [few],
    n =>
      (store, { run }) =>
        store.registerConsumer(consumer(run, n)),
  ),
  command(
    'heartbeat',
    [few, offset],
    (n, nowMs) =>
      (store, { run }) =>
        store.heartbeat(consumer(run, n).consumerId, nowMs),
  ),
  command(
    'join',
    [few, few],
    (g, n) =>
      (store, { group, run }) =>
        store.joinGroup(memberOf(group(g), consumer(run, n).consumerId)),
  ),
  command(
    'leave',
    [few, few],
    (g, n) =>
      (store, { group, run }) =>
        store.leaveGroup(group(g), consumer(run, n).consumerId),
  ),
  command(
    'remove',
    [few, fc.option(offset, { nil: undefined })],
    (n, heartbeatBeforeMs) =>
      (store, { run }) =>
        store.removeConsumer(
          consumer(run, n).consumerId,
          heartbeatBeforeMs === undefined ? undefined : { heartbeatBeforeMs },
        ),
  ),
  command(
    'reset',
    [few, few, offset],
    (g, id, to) =>
      (store, { group }) =>
        store.resetOffset({ groupName: group(g), queueOffsetId: id }, to),
  ),
  command(
    'stop',
    [few, few, fc.boolean()],
    (g, id, isStopped) =>
      (store, { group }) =>
        store.setStopped({ groupName: group(g), queueOffsetId: id }, isStopped),
  ),
  command('sleep', [few], g => async (store, { group }) => {
    const awake = (await store.listAwakeGroups()).find(({ groupName }) => groupName === group(g))
    if (awake) await store.sleepGroup(awake)
    return awake?.groupName
  }),
)

const consumer = (run: number, n: number) => consumerOf(run * 10 + n, `consumer-${run}-${n}`)
const backward = (queueId: number) =>
  ({ queueId, fromOffset: Number.MAX_SAFE_INTEGER, direction: 'backward', limit: 100, consistent: true }) as const
const plain = <B extends { bytes: Uint8Array }>(batches: B[]) =>
  batches.map(batch => ({ ...batch, bytes: Buffer.from(batch.bytes).toString() }))

/** Everything that a run can have changed. */
async function readAll(store: Store, names: Names): Promise<unknown> {
  const both = [1, 2]
  const inOrder = (values: string[]) => values.toSorted()
  const topics = await Promise.all(both.map(n => store.readTopic(names.topic(n))))
  return {
    logs: await Promise.all(both.map(n => store.readHeaders(backward(names.queue(n))))),
    topics: topics.map(topic => topic && { ...topic, groupNames: inOrder(topic.groupNames) }),
    groups: await Promise.all(both.map(n => store.readGroup(names.group(n)))),
    consumers: await Promise.all(both.map(n => store.readConsumers([consumer(names.run, n).consumerId]))),
    awake: (await store.listAwakeGroups())
      .map(awake => awake.groupName)
      .filter(name => name.startsWith(`g-${names.run}-`)),
  }
}

export async function sameAnswers(store: Store, unique: () => number, sequences: number): Promise<void> {
  await using reference = Object.assign(openSqliteStore(':memory:'), {
    [Symbol.asyncDispose]: () => reference.close(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(commands, { minLength: 5, maxLength: 40 }), async sequence => {
      const run = 1_000_000 + unique()
      const names: Names = {
        run,
        group: n => `g-${run}-${n}`,
        topic: n => `t-${run}-${n}`,
        queue: n => run * 10 + n,
      }
      for (const { label, run: act } of sequence) {
        assert.deepEqual(await act(store, names), await act(reference, names), label)
      }
      assert.deepEqual(await readAll(store, names), await readAll(reference, names))
    }),
    { numRuns: sequences },
  )
}
