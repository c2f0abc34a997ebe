import { queueArrival } from '../arrivals.ts'
import type { Core } from '../core.ts'
import type { AppendResult } from '../log/append.ts'
import { type Cut, cutIntoBatches } from '../log/cut.ts'
import type { Placement } from '../log/placement.ts'
import type { TopicSnapshot } from '../model.ts'
import { limits } from '../protocol/limits.ts'
import type { PublishMessage, PublishRequest, PublishRun } from '../protocol/publish.ts'
import type { BatchMessage, FailureTrail } from '../protocol/pull.ts'
import { routePart } from './route-part.ts'

/** What the service itself publishes to fail topics: messages with their past, and with the address they first came from. */
export type InternalMessage = PublishMessage & Pick<BatchMessage, 'sendIp'> & { failed?: FailureTrail }
export type InternalRequest = Omit<PublishRequest, 'msgs'> & { msgs?: InternalMessage[] | null | undefined }

/** A part of a publish: the messages of one placement, to be stored in one queue. */
export type Part = { snapshot: TopicSnapshot; request: InternalRequest; placement: Placement }

export type Stored = { runs: PublishRun[]; isRetryable: boolean }

/** Stores the messages of one placement: usually one batch, more if they do not fit into one. */
export async function storePlacement(core: Core, part: Part, publishId: string): Promise<Stored> {
  const { placement, request } = part
  const messages = placement.indexes.map(index => toBatchMessage(request, index))
  const cuts = cutIntoBatches(messages, core.settings.compression)
  const runs: PublishRun[] = []
  let failure: Failure | undefined
  for (const [i, cut] of cuts.entries()) {
    const indexes = placement.indexes.slice(cut.from, cut.from + cut.count)
    // Order holds also over a failure: what comes behind it is not stored either.
    const outcome = failure ?? (await storeCut(core, part, nameOfCut(publishId, i), cut))
    if ('error' in outcome) failure = outcome
    runs.push(...toRuns(indexes, outcome))
  }
  return { runs, isRetryable: failure?.isRetryable ?? false }
}

/** A space is in no publishId that a client may give: so no publish is called as a part of another one is. */
const nameOfCut = (publishId: string, index: number) =>
  index === 0 ? publishId : `${publishId}${publishId.includes(' ') ? '' : ' '}/${index}`

export function toBatchMessage(request: InternalRequest, index: number): BatchMessage {
  const message = request.msgs?.[index]
  if (message === undefined) throw new RangeError(`no message ${index} in this publish`)
  const { tag, bizId, head, body, traceId, retryCount, key, sendIp = request.clientIp, failed } = message
  return {
    ...(tag && { tag }),
    ...(bizId && { bizId }),
    ...(head && { head }),
    body,
    ...(traceId && { traceId }),
    ...(retryCount && { retryCount }),
    ...(key && { key }),
    ...(sendIp && { sendIp }),
    ...(failed && { failed }),
  }
}

type Failure = { error: string; isRetryable: boolean }
type CutOutcome = { queueId: number; offset: number } | Failure

/** Groups indexes that follow each other into runs; their offsets follow each other anyway. */
function toRuns(indexes: readonly number[], stored: CutOutcome): PublishRun[] {
  const runs: PublishRun[] = []
  for (const [position, index] of indexes.entries()) {
    const last = runs.at(-1)
    if (last && last.first + last.count === index) last.count++
    else if ('error' in stored) runs.push({ first: index, count: 1, error: stored.error })
    else runs.push({ first: index, count: 1, queueId: stored.queueId, offset: stored.offset + position })
  }
  return runs
}

async function storeCut(core: Core, part: Part, publishId: string, cut: Cut): Promise<CutOutcome> {
  const { name: topicName, retentionMs } = part.snapshot.topic
  const { count, codec, bytes, text } = cut
  if (bytes.length > limits.maxBatchBytes) {
    const error = `a message of ${bytes.length} bytes as stored; at most ${limits.maxBatchBytes} are accepted`
    return { error, isRetryable: false }
  }
  const append = { topicName, publishId, retentionMs, count, codec, bytes }
  const { queueId, result } = await routePart(core, part, append)
  switch (result.outcome) {
    case 'stored': {
      const { base, appendedAtMs } = result
      core.reader.remember(queueId, { base, count, appendedAtMs, expiresAtMs: appendedAtMs + retentionMs, text })
      core.arrivals.announce(queueArrival(queueId))
      return { queueId, offset: base }
    }
    case 'found':
      return { queueId, offset: result.base }
    default:
      return failureOf(result, part.request.publishId ?? undefined)
  }
}

export const usedForOthers = (publishId: string) => `publishId ${publishId} was used for other messages`

type Failed = Exclude<AppendResult, { outcome: 'stored' | 'found' }>

function failureOf(result: Failed, publishId: string | undefined): Failure {
  if (result.outcome === 'others') return { error: usedForOthers(publishId ?? ''), isRetryable: false }
  // Whether it was stored is not known: only under its own publishId may it be sent again.
  if (result.outcome === 'unknown') return { error: '消息保存失败！', isRetryable: publishId !== undefined }
  return { error: 'the store asks for a slower pace', isRetryable: true }
}
