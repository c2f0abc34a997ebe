import { subscribe } from '../../core/admin/subscriptions.ts'
import { createTopic } from '../../core/admin/topics.ts'
import { createCore, defaultSettings } from '../../core/core.ts'
import { forEachOf } from '../../core/for-each-of.ts'
import { newGroup } from '../../core/group/copies.ts'
import { tick } from '../../core/tick/tick.ts'
import { newSecret } from '../../functions/edge/core.ts'
import { silentBus } from '../../functions/edge/lazy-bus.ts'
import { createCapacityMeter } from '../../store/dynamo/meter.ts'
import { openTestStore } from './dynamo-store.ts'
import type { RunningEngine } from './engines.ts'
import { createManualClock } from './manual-clock.ts'

const minuteMs = 60_000
const retentionMs = 7 * 86_400_000

export type Fleet = { groups: number; queues: number; hasMembers: boolean; batchBytes: number }

/**
 * A fleet in which nothing happens, on DynamoDB: each group has a topic of its own and its fail topic. What is in the topic's queues, a
 * batch each, is handled. With members, each group has one, which lives.
 */
export async function openIdleFleet(engine: RunningEngine, { groups, queues, hasMembers, batchBytes }: Fleet) {
  const meter = createCapacityMeter()
  const clock = createManualClock(Date.UTC(2026, 11, 1))
  const { store, close } = await openTestStore(engine, { onCapacity: meter.onCapacity, clock })
  let ids = 0
  const parts = { store, clock, random: Math.random, newId: () => `id-${++ids}`, newSecret, bus: silentBus }
  const core = createCore({ ...parts, settings: defaultSettings })
  const consumerIds: number[] = []

  async function makeGroup(i: number): Promise<void> {
    const [topicName, groupName] = [`topic-${i}`, `group-${i}`]
    await createTopic(core, { name: topicName, queues, retentionMs })
    const appendedAtMs = clock.now()
    await forEachOf((await store.readTopic(topicName))?.queues ?? [], ({ queueId }) =>
      store.appendBatch({
        queueId,
        base: 1,
        count: 100,
        publishId: 'p',
        appendedAtMs,
        expiresAtMs: appendedAtMs + retentionMs,
        codec: 0,
        bytes: new Uint8Array(batchBytes),
      }),
    )
    await store.createGroup(newGroup(groupName, clock.now()))
    await subscribe(core, groupName, topicName, {})
    if (hasMembers) await addMember(groupName, topicName)
  }

  async function addMember(groupName: string, topicName: string): Promise<void> {
    const [heartbeatAtMs, name, ip] = [clock.now(), `consumer of ${groupName}`, '10.0.0.1']
    const consumer = { consumerId: 0, name, ip, sdkVersion: '1', lan: 'node', groupNames: [], heartbeatAtMs }
    const consumerId = await store.registerConsumer({ ...consumer, consumerId: await store.takeIds('consumer', 1) })
    const member = { groupName, consumerId, consumerName: name, ip, topicNames: [topicName], joinedAtMs: heartbeatAtMs }
    await store.joinGroup(member)
    await store.askRebalance(groupName)
    consumerIds.push(consumerId)
  }

  await forEachOf(
    Array.from({ length: groups }, (_, i) => i),
    makeGroup,
  )
  return {
    meter,
    close,
    /** Ticks, one a minute, of one container. Answers with how long each took, in milliseconds. */
    async tick(minutes: number): Promise<number[]> {
      const took: number[] = []
      for (let minute = 0; minute < minutes; minute++) {
        clock.advance(minuteMs)
        await forEachOf(consumerIds, consumerId => store.heartbeat(consumerId, clock.now()))
        const startedAt = performance.now()
        const { failed, left } = await tick(core)
        took.push(performance.now() - startedAt)
        if (failed.length > 0 || left > 0) throw new Error(`${failed.length} failed, ${left} left: ${failed[0]?.cause}`)
      }
      return took
    },
  }
}
