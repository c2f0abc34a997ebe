import { createServer, type IncomingMessage } from 'node:http'
import type { CommitRequest, CommitResponse } from '../../../core/protocol/commit.ts'
import type { AssignedQueue, PollRequest, RegisterGroupRequest } from '../../../core/protocol/membership.ts'
import type { PublishRequest, PublishResponse } from '../../../core/protocol/publish.ts'
import type { PullRequest } from '../../../core/protocol/pull.ts'
import { bodyOf, queues, tags, topicName } from '../acts.ts'
import { listen } from './listen.ts'

/** The service as the SDK sees it, without a store: it takes everything, and has messages without an end. */
export async function servePmq(): Promise<string> {
  const ends = new Map<number, number>()
  let registered = 0

  const answers: Record<string, (request: never) => object | string> = {
    getTopicQueueIds: () => ({ suc: true, topicQueues: { [topicName]: queueIds } }),
    register: () => ({ suc: true, id: ++registered }),
    registerConsumerGroup: ({ consumerGroupNames }: RegisterGroupRequest) => {
      const names = Object.keys(consumerGroupNames ?? {})
      return { suc: true, consumerGroupNameNew: Object.fromEntries(names.map(name => [name, name])) }
    },
    heartbeat: () => ({ suc: true, heatbeatTime: 10, deleted: 0, bakUrl: '' }),
    deRegister: () => ({ suc: true }),
    getConsumerGroupPolling: poll,
    pullData: pull,
    commitOffset: ({ queueOffsets }: CommitRequest): CommitResponse => ({
      suc: true,
      results: (queueOffsets ?? []).map(({ queueOffsetId }) => ({ queueOffsetId, outcome: 'advanced' })),
    }),
    publish({ msgs, queueId }: PublishRequest): PublishResponse {
      const id = queueId ?? 1
      const count = msgs?.length ?? 0
      const offset = ends.get(id) ?? 1
      ends.set(id, offset + count)
      return { suc: true, sleepTime: 0, offsets: [{ first: 0, count, queueId: id, offset }] }
    },
  }

  const server = createServer(async (incoming, outgoing) => {
    const request = JSON.parse(await readText(incoming))
    const answer = answers[incoming.url?.split('/').at(-1) ?? '']?.(request as never) ?? { suc: false }
    const text = typeof answer === 'string' ? answer : JSON.stringify(answer)
    outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    outgoing.end(text)
  })
  return `http://${await listen(server)}`
}

const queueIds = Array.from({ length: queues }, (_, i) => i + 1)
const batchSize = 100

export async function readText(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** Every group has all queues, with the settings that its name tells. */
function poll({ consumerGroupVersion }: PollRequest): object {
  const [[groupName, version] = ['', 0]] = Object.entries(consumerGroupVersion ?? {})
  const group = {
    meta: { name: groupName, rbVersion: 1, metaVersion: 1, version: 1 },
    queues: Object.fromEntries(queueIds.map(queueId => [queueId, assign(groupName, queueId)])),
  }
  const consumerGroups = version < 1 ? { [groupName]: group } : {}
  return { suc: true, sleepTime: 0, consumerDeleted: 0, brokerMetaMode: -1, consumerGroups }
}

function assign(consumerGroupName: string, queueId: number): AssignedQueue {
  const [, consumerBatchSize = 1, by] = consumerGroupName.split('-')
  return {
    ...{ queueOffsetId: queueId, queueId, offset: 0, offsetVersion: 1, lastId: 0 },
    ...{ consumerGroupName, topicName, originTopicName: topicName, topicType: 1, topicId: 1 },
    ...{ threadSize: 5, consumerBatchSize: Number(consumerBatchSize), pullBatchSize: 50, maxPullTime: 5 },
    ...{ delayProcessTime: 0, retryCount: 3, stopFlag: 0, traceFlag: 0, timeout: 0 },
    ...(by === 'tag' && { tag: tags[0] }),
  }
}

const plainBatch = batchText(n => ({ key: `key-${n}`, body: bodyOf(n) }))
const taggedBatch = batchText(n => ({ key: `key-${n}`, tag: tags[n % tags.length], body: bodyOf(n) }))

function batchText(message: (n: number) => object): string {
  return JSON.stringify(Array.from({ length: batchSize }, (_, n) => message(n)))
}

/** As many whole batches as were asked for by size, spliced as text as the real one does. */
function pull({ offsetStart, maxBytes, consumerGroupName }: PullRequest): string {
  const msgs = consumerGroupName?.endsWith('tag') ? taggedBatch : plainBatch
  const first = Math.floor(offsetStart / batchSize) * batchSize + 1
  const count = Math.max(1, Math.floor((maxBytes ?? 1) / msgs.length))
  const texts = Array.from(
    { length: count },
    (_, i) => `{"offset":${first + i * batchSize},"time":1800000000000,"msgs":${msgs}}`,
  )
  return `{"suc":true,"batches":[${texts.join()}]}`
}
