import { groupArrival, queueArrival } from '../arrivals.ts'
import type { Core } from '../core.ts'
import { parseMessages } from '../log/encoding.ts'
import type { ReadResult, TextBatch } from '../log/read.ts'
import type { TopicSnapshot } from '../model.ts'
import { limits } from '../protocol/limits.ts'
import type { PulledMessage, PullRequest, PullResponse } from '../protocol/pull.ts'
import { isKnownFenced } from './fencing.ts'
import { findGroup, findTopicWith } from './find.ts'
import { formatSendTime } from './send-time.ts'

/** An answer whose batches are still the JSON text that the log holds; `serializePull` splices them in unparsed. */
export type PullAnswer = Omit<PullResponse, 'batches'> & { batches?: TextBatch[] }

/**
 * A Lambda answers with 6 MB at most, in which this text is JSON once more: up to three bytes for each character. What is
 * left is for the fields that a PMQ client is told of each message beside.
 */
const maxAnswerTextLength = 2_000_000

/** Reads messages of a queue after an offset: by size in whole batches, or by PMQ's window of offsets. */
export async function pullData(core: Core, request: PullRequest): Promise<PullAnswer> {
  const { queueId, offsetStart, topicName, consumerGroupName } = request
  const bySize = request.maxBytes != null
  const offsetEnd = request.offsetEnd ?? 0
  if (queueId <= 0 || offsetStart < 0 || (!bySize && offsetStart >= offsetEnd)) return { suc: false, msg: '参数不对！' }
  if (isKnownFenced(core, request)) return { suc: false, fenced: true, msg: `queueId_${queueId} has another owner` }
  const hasQueue = (topic: TopicSnapshot) => topic.queues.some(queue => queue.queueId === queueId)
  const topic = await findTopicWith(core, topicName ?? '', hasQueue)
  if (!topic) return { suc: false, msg: `queueId_${queueId}_is_not_exist！` }

  const maxMessages = bySize ? Number.MAX_SAFE_INTEGER : Math.min(offsetEnd - offsetStart, limits.maxPullMessages)
  const maxTextLength = Math.min(request.maxBytes ?? limits.maxPullBytes, maxAnswerTextLength)
  const read = () => core.reader.read({ queueId, afterOffset: offsetStart, maxTextLength, maxMessages })
  const found = await readOrWait(core, request, read)
  const group = consumerGroupName ? await findGroup(core, consumerGroupName) : undefined
  return {
    suc: true,
    ...(bySize ? { batches: found.batches } : { msgs: toMessages(core, request, found.batches, maxMessages) }),
    ...(found.skipped > 0 && { skipped: found.skipped }),
    ...(group && { version: group.version }),
    ...(bySize && { nowMs: core.clock.now() }),
  }
}

/** Reads; if there is nothing and the server may hold the pull, waits for a message or a change of the group. */
async function readOrWait(core: Core, request: PullRequest, read: () => Promise<ReadResult>): Promise<ReadResult> {
  const waitMs = Math.min(request.waitMs ?? 0, core.settings.pullHoldMs)
  if (waitMs <= 0) return read()
  const topics = [queueArrival(request.queueId)]
  if (request.consumerGroupName) topics.push(groupArrival(request.consumerGroupName))
  const mark = core.arrivals.mark(topics)
  const found = await read()
  if (found.batches.length > 0) return found
  await core.arrivals.wait(mark, waitMs)
  return read()
}

/** The messages behind `offsetStart`, one by one. Behind a gap they lie beyond `offsetEnd`, else a PMQ client would stall. */
function toMessages(core: Core, request: PullRequest, batches: TextBatch[], maxMessages: number): PulledMessage[] {
  const messages: PulledMessage[] = []
  for (const batch of batches) {
    const sendTime = formatSendTime(batch.appendedAtMs, core.settings.timeZone)
    for (const [index, message] of parseMessages(batch.text).entries()) {
      const id = batch.base + index
      if (id <= request.offsetStart) continue
      if (messages.length === maxMessages) return messages
      messages.push({
        id,
        tag: message.tag ?? '',
        bizId: message.bizId ?? '',
        ...(message.head && { head: message.head }),
        body: message.body,
        // Not stored where the publisher gave none: this one is as unique, and the same at each reading.
        traceId: message.traceId ?? `${request.queueId}-${id}`,
        retryCount: message.retryCount ?? 0,
        ...(message.sendIp && { sendIp: message.sendIp }),
        sendTime,
      })
    }
  }
  return messages
}

/** JSON of a pull's answer. The messages of its batches are text already. */
export function serializePull({ batches, ...rest }: PullAnswer): string {
  const head = JSON.stringify(rest)
  if (batches === undefined) return head
  const spliced = batches.map(batch => `{"offset":${batch.base},"time":${batch.appendedAtMs},"msgs":${batch.text}}`)
  return `${head.slice(0, -1)},"batches":[${spliced.join(',')}]}`
}
