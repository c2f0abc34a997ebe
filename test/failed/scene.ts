import assert from 'node:assert/strict'
import { listFailed } from '../../core/admin/failed.ts'
import { createGroup } from '../../core/admin/groups.ts'
import { subscribe } from '../../core/admin/subscriptions.ts'
import { createTopic } from '../../core/admin/topics.ts'
import { publishAndUpdateResultFailMsg } from '../../core/client/failures.ts'
import { publish } from '../../core/client/publish.ts'
import type { Core } from '../../core/core.ts'
import { failTopicName } from '../../core/group/fail-topics.ts'
import type { Clock } from '../../core/protocol/clock.ts'
import type { FailedView } from '../../core/protocol/failed.ts'
import type { FailuresRequest } from '../../core/protocol/failures.ts'
import type { BatchMessage } from '../../core/protocol/pull.ts'
import type { Store } from '../../core/store.ts'
import { createContainer } from '../log/containers.ts'

export type Place = { queueId: number; offset: number }

/** A clock on which waiting takes no time. */
export function createHastyClock(): Clock & { advance(ms: number): void } {
  let nowMs = 1_700_000_000_000
  return {
    now: () => nowMs,
    monotonic: () => nowMs,
    async sleep(ms) {
      nowMs += Math.ceil(ms)
      await new Promise(setImmediate)
    },
    advance(ms) {
      nowMs += ms
    },
  }
}

/** A topic of one queue with two messages, and a group that handles failures once more. */
export type Scene = {
  groupName: string
  topicName: string
  origin: Place[]
  /** What its consumer says of a queue, as the one who has it. */
  named(queueId: number): Promise<FailuresRequest>
  failures(messages: { id: number; retryCount: number }[]): FailuresRequest
  records(): Promise<FailedView[]>
  /** What lies in the fail topic: each message with its place. */
  letters(): Promise<(Place & { message: BatchMessage })[]>
}

export async function createScene(store: Store, clock: Clock, name: string): Promise<Scene> {
  const core = createContainer(store, { clock })
  const [groupName, topicName] = [`g-${name}`, `t-${name}`]
  await createTopic(core, { name: topicName, queues: 1, retentionMs: 3_600_000 })
  await createGroup(core, { name: groupName, mode: 'claimed' })
  await subscribe(core, groupName, topicName, { retryCount: 1 })
  const published = await publish(core, { topicName, msgs: [{ body: 'a' }, { body: 'b' }] })
  const queueId = published.offsets?.[0]?.queueId ?? assert.fail()
  const failTopic = failTopicName(groupName, topicName)
  return {
    groupName,
    topicName,
    origin: [1, 2].map(offset => ({ queueId, offset })),
    async named(of) {
      const place = (await store.readGroup(groupName))?.offsets.find(offset => offset.queueId === of)
      assert.ok(place)
      const { queueOffsetId, offsetVersion } = place
      return { queueId: of, consumerGroupName: groupName, queueOffsetId, offsetVersion }
    },
    failures: messages => ({
      failMsg: {
        topicName: failTopic,
        msgs: messages.map(message => ({ ...message, body: message.id === 1 ? 'a' : 'b' })),
      },
      cause: { kind: 'threw', text: 'Error: no' },
    }),
    records: async () => {
      const request = { order: 'oldest', limit: 100, counts: false } as const
      return (await listFailed(createContainer(store, { clock }), groupName, topicName, request)).failed
    },
    async letters() {
      const { reader } = createContainer(store, { clock })
      const found: (Place & { message: BatchMessage })[] = []
      for (const { queueId: failQueueId } of (await store.readTopic(failTopic))?.queues ?? []) {
        for (let offset = 1; ; offset++) {
          const batch = await reader.batchAt(failQueueId, offset)
          if (!batch) break
          const messages: BatchMessage[] = JSON.parse(batch.text)
          const message = messages[offset - batch.base]
          if (message) found.push({ queueId: failQueueId, offset, message })
        }
      }
      return found
    },
  }
}

/** Sends as the SDK does, which goes on until it is answered with success. */
export async function sendUntilTaken(core: Core, request: FailuresRequest, firstAttempt = 1): Promise<void> {
  for (let attempt = firstAttempt; attempt < firstAttempt + 5; attempt++) {
    const failMsg = request.failMsg && { ...request.failMsg, publishId: 'p-1', attempt, attemptAgeMs: 60_000 }
    const { suc, msg } = await publishAndUpdateResultFailMsg(core, { ...request, ...(failMsg && { failMsg }) })
    if (suc) return
    if (attempt === firstAttempt + 4) assert.fail(`never taken: ${msg}`)
  }
}
