import type { Queue, Topic } from '../../core/model.ts'
import { nameRestMs, type RegistryStore, removalKeptMs } from '../../core/store.ts'
import { keys } from '../keys.ts'
import type { Database } from './database.ts'
import type { Records } from './records.ts'

type TopicOperations = Pick<
  RegistryStore,
  | 'takeIds'
  | 'createTopic'
  | 'updateTopic'
  | 'addQueues'
  | 'beginTopicRemoval'
  | 'cancelTopicRemoval'
  | 'removeTopicQueues'
  | 'removeTopic'
  | 'setReadOnly'
  | 'removeQueue'
  | 'readTopic'
  | 'listTopics'
  | 'checkpointQueue'
>

/** With `removedAtMs`: it is done. */
type Removal = { removal: string; removedAtMs?: number }

export function createTopics(database: Database, written: Records, durable: Records): TopicOperations {
  const isRemovedBy = (topicName: string, removal: string) =>
    written.get<Removal>(keys.topicRemoval(topicName))?.removal === removal

  function forgetQueue(topicName: string, queueId: number): void {
    written.delete(keys.queue(topicName, queueId))
    // So that `trim` knows that nobody asks any more where its offsets go on.
    written.put(keys.removedQueue(queueId), {})
  }

  return {
    takeIds: (kind, count) =>
      database.write(() => {
        const first = (written.get<{ last: number }>(keys.counter(kind))?.last ?? 0) + 1
        written.put(keys.counter(kind), { last: first + count - 1 })
        return first
      }),

    createTopic: (topic, queues) =>
      database.write(() => {
        if (written.get(keys.topic(topic.name))) return 'exists'
        const { removedAtMs } = written.get<Removal>(keys.topicRemoval(topic.name)) ?? {}
        if (removedAtMs !== undefined && removedAtMs > topic.createdAtMs - nameRestMs) return 'removed_lately'
        written.delete(keys.topicRemoval(topic.name))
        written.put(keys.topic(topic.name), topic)
        written.put(keys.name('topic', topic.name), {})
        for (const queue of queues) written.put(keys.queue(topic.name, queue.queueId), queue)
        return 'created'
      }),

    addQueues: (topicName, queues, additions) =>
      database.write(() => {
        const topic = written.get<Topic>(keys.topic(topicName))
        if (!topic || written.get(keys.topicRemoval(topicName))) return 'unknown_topic'
        const { additions: made = 0 } = topic
        if (made !== (additions ?? made)) return 'conflict'
        if (queues.some(({ queueId }) => written.get(keys.queue(topicName, queueId)))) return 'conflict'
        written.put(keys.topic(topicName), { ...topic, additions: made + 1 })
        for (const queue of queues) written.put(keys.queue(topicName, queue.queueId), queue)
        return 'added'
      }),

    beginTopicRemoval: (topicName, removal) =>
      database.write(() => {
        if (!written.get(keys.topic(topicName))) return 'unknown_topic'
        written.put<Removal>(keys.topicRemoval(topicName), { removal })
        return 'begun'
      }),

    cancelTopicRemoval: (topicName, removal) =>
      database.write(() => {
        if (isRemovedBy(topicName, removal)) written.delete(keys.topicRemoval(topicName))
      }),

    removeTopicQueues: (topicName, removal, queueIds) =>
      database.write(() => {
        if (!isRemovedBy(topicName, removal)) return 'overtaken'
        for (const queueId of queueIds) forgetQueue(topicName, queueId)
        return 'removed'
      }),

    removeTopic: (topicName, removal, nowMs) =>
      database.write(() => {
        if (!isRemovedBy(topicName, removal)) return 'overtaken'
        written.delete(keys.topic(topicName))
        written.delete(keys.name('topic', topicName))
        const removed: Removal = { removal, removedAtMs: nowMs }
        written.put(keys.topicRemoval(topicName), removed, nowMs + removalKeptMs)
        return 'removed'
      }),

    setReadOnly: (topicName, queueId, sinceMs) =>
      database.write(() => {
        const key = keys.queue(topicName, queueId)
        const queue = written.get<Queue>(key)
        if (!queue) return 'unknown_queue'
        const { readOnlySinceMs, ...writable } = queue
        const since = sinceMs === undefined ? undefined : (readOnlySinceMs ?? sinceMs)
        written.put(key, since === undefined ? writable : { ...writable, readOnlySinceMs: since })
        return 'set'
      }),

    removeQueue: (topicName, queueId, sinceMs) =>
      database.write(() => {
        const key = keys.queue(topicName, queueId)
        const queue = written.get<Queue>(key)
        if (!queue) return 'unknown_queue'
        const { readOnlySinceMs } = queue
        if (readOnlySinceMs === undefined || readOnlySinceMs !== (sinceMs ?? readOnlySinceMs)) return 'writable'
        forgetQueue(topicName, queueId)
        return 'removed'
      }),

    readTopic: topicName =>
      database.read(() => {
        const records = durable.list<unknown>(keys.topicPartition(topicName))
        const topic = records.find(record => record.sk === 'TOPIC')?.doc as Topic | undefined
        if (!topic) return undefined
        const ofKind = (prefix: string) => records.filter(record => record.sk.startsWith(prefix))
        return {
          topic,
          queues: ofKind('QUEUE#').map(record => record.doc as Queue),
          groupNames: ofKind('GROUP#').map(groupNameOf),
          notifies: ofKind('GROUP#')
            .filter(({ doc }) => (doc as { notifies?: boolean }).notifies)
            .map(groupNameOf),
        }
      }),

    updateTopic: (topicName, { maxLag, maxLagSeconds }) =>
      database.write(() => {
        const topic = written.get<Topic>(keys.topic(topicName))
        if (!topic) return 'unknown_topic'
        const changed = {
          ...topic,
          ...(maxLag !== undefined && { maxLag }),
          ...(maxLagSeconds !== undefined && { maxLagSeconds }),
        }
        written.put(keys.topic(topicName), changed)
        return 'updated'
      }),

    listTopics: ({ after, limit }) =>
      database.read(() => durable.listKeys(keys.namesPartition('topic'), after ?? '', limit)),

    checkpointQueue: (topicName, queueId, nextOffset) =>
      database.write(() => {
        const key = keys.queue(topicName, queueId)
        const queue = written.get<Queue>(key)
        if (!queue) return 'unknown_queue'
        if (nextOffset <= queue.checkpoint) return 'unchanged'
        written.put(key, { ...queue, checkpoint: nextOffset })
        return 'advanced'
      }),
  }
}

const groupNameOf = ({ sk }: { sk: string }) => sk.slice('GROUP#'.length)
