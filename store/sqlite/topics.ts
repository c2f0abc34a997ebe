import type { Queue, Topic } from '../../core/model.ts'
import type { RegistryStore } from '../../core/store.ts'
import { keys } from '../keys.ts'
import type { Database } from './database.ts'
import type { Records } from './records.ts'

type TopicOperations = Pick<
  RegistryStore,
  | 'takeIds'
  | 'createTopic'
  | 'addQueue'
  | 'setReadOnly'
  | 'removeQueue'
  | 'readTopic'
  | 'listTopics'
  | 'checkpointQueue'
>

export function createTopics(database: Database, written: Records, durable: Records): TopicOperations {
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
        written.put(keys.topic(topic.name), topic)
        written.put(keys.name('topic', topic.name), {})
        for (const queue of queues) written.put(keys.queue(topic.name, queue.queueId), queue)
        return 'created'
      }),

    addQueue: queue =>
      database.write(() => {
        const key = keys.queue(queue.topicName, queue.queueId)
        if (written.get(key)) return 'exists'
        written.put(key, queue)
        return 'created'
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
        written.delete(key)
        // So that `trim` knows that nobody asks any more where its offsets go on.
        written.put(keys.removedQueue(queueId), {})
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
          groupNames: ofKind('GROUP#').map(record => record.sk.slice('GROUP#'.length)),
        }
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
