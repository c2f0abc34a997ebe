import { queueArrival } from '../arrivals.ts'
import type { Core } from '../core.ts'
import { type AppendResult, findPublish } from '../log/append.ts'
import { type Cut, cutIntoBatches } from '../log/cut.ts'
import { hashKey, type Placement, placeMessages } from '../log/placement.ts'
import type { TopicSnapshot } from '../model.ts'
import { limits } from '../protocol/limits.ts'
import type { PublishMessage, PublishRequest, PublishResponse, PublishRun } from '../protocol/publish.ts'
import type { BatchMessage } from '../protocol/pull.ts'
import { refuseMessage } from './message-limits.ts'

/**
 * Publishes messages: one batch for each queue that they go to. Answered when all are durable. What could not be stored
 * is named run by run, and `sleepTime > 0` says that sending the same again (with the same `publishId`) may succeed and
 * stores only what is missing.
 */
export async function publish(core: Core, request: PublishRequest): Promise<PublishResponse> {
  const topicName = request.topicName ?? ''
  const messages = request.msgs ?? []
  if (messages.length === 0) return refused(`topic_${topicName}_msg_is_null!`)
  const snapshot = await core.topics.get(topicName)
  if (snapshot === undefined) return refused(`topic_${topicName}_is_not_exist!`)
  if (snapshot.queues.length === 0) return refused(`topic1_${topicName}_and_has_no_queue!`)
  if (snapshot.queues.every(queue => queue.readOnly)) return refused(`topic_${topicName}_and_has_no_queue!`)
  const tooLarge = refuseMessages(messages)
  if (tooLarge !== undefined) return refused(tooLarge)

  const publishId = request.publishId ?? core.newId()
  const { placements, refusals } = placeMessages(topicName, snapshot.queues, messages)
  const isWhole = placements.length === 1 && refusals.length === 0
  const stored = await Promise.all(
    placements.map(placement =>
      storePlacement(core, snapshot, request, placement, isWhole ? publishId : `${publishId}:${nameOf(placement)}`),
    ),
  )
  const runs = [...stored.flatMap(s => s.runs), ...refusals.map(r => ({ first: r.index, count: 1, error: r.error }))]
  return answer(
    core,
    runs,
    stored.some(s => s.isRetryable),
    request.publishId != null,
  )
}

const refused = (msg: string): PublishResponse => ({ suc: false, msg, sleepTime: 0 })

function refuseMessages(messages: readonly PublishMessage[]): string | undefined {
  if (messages.length > limits.maxMessagesPerPublish) {
    return `a publish of ${messages.length} messages; at most ${limits.maxMessagesPerPublish} are accepted`
  }
  for (const [index, message] of messages.entries()) {
    const why = refuseMessage(message)
    if (why !== undefined) return `message ${index}: ${why}`
  }
  return undefined
}

/** Names a part of a publish by the messages in it: were they others, it would not be the same part. */
function nameOf({ indexes, pinned }: Placement): string {
  return `${pinned ? 'k' : 'u'}${indexes[0]}.${indexes.length}.${hashKey(indexes.join()).toString(36)}`
}

const maxSleepMs = 1000

function answer(core: Core, runs: PublishRun[], isRetryable: boolean, hasPublishId: boolean): PublishResponse {
  const offsets = runs.sort((a, b) => a.first - b.first)
  const failure = offsets.find(run => run.error !== undefined)
  if (failure === undefined) return { suc: true, sleepTime: 0, offsets }
  // Without a publishId, sending again would store twice what is stored already.
  const mayRetry = isRetryable && (hasPublishId || offsets.every(run => run.error !== undefined))
  const sleepTime = mayRetry ? 1 + Math.floor(core.random() * maxSleepMs) : 0
  return { suc: false, msg: failure.error ?? '', sleepTime, offsets }
}

type Stored = { runs: PublishRun[]; isRetryable: boolean }

/** Stores the messages of one placement: usually one batch, more if they do not fit into one. */
async function storePlacement(
  core: Core,
  snapshot: TopicSnapshot,
  request: PublishRequest,
  placement: Placement,
  publishId: string,
): Promise<Stored> {
  const messages = placement.indexes.map(index => toBatchMessage(request, index))
  const cuts = cutIntoBatches(messages, core.settings.compression)
  const runs: PublishRun[] = []
  let failure: { error: string; isRetryable: boolean } | undefined
  for (const [part, cut] of cuts.entries()) {
    const indexes = placement.indexes.slice(cut.from, cut.from + cut.count)
    // Order holds also over a failure: what comes behind it is not stored either.
    const stored = failure
      ? failure
      : await storeCut(core, snapshot, request, placement, part ? `${publishId}/${part}` : publishId, cut)
    if ('error' in stored) failure = stored
    runs.push(...toRuns(indexes, stored))
  }
  return { runs, isRetryable: failure?.isRetryable ?? false }
}

function toBatchMessage(request: PublishRequest, index: number): BatchMessage {
  const message = request.msgs?.[index]
  if (message === undefined) throw new RangeError(`no message ${index} in this publish`)
  const { tag, bizId, head, body, traceId, retryCount, key } = message
  return {
    ...(tag && { tag }),
    ...(bizId && { bizId }),
    ...(head && { head }),
    body,
    ...(traceId && { traceId }),
    ...(retryCount && { retryCount }),
    ...(key && { key }),
    ...(request.clientIp && { sendIp: request.clientIp }),
  }
}

type CutOutcome = { queueId: number; offset: number } | { error: string; isRetryable: boolean }

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

async function storeCut(
  core: Core,
  snapshot: TopicSnapshot,
  request: PublishRequest,
  placement: Placement,
  publishId: string,
  cut: Cut,
): Promise<CutOutcome> {
  const { topic } = snapshot
  if (cut.bytes.length > limits.maxBatchBytes) {
    const error = `a message of ${cut.bytes.length} bytes as stored; at most ${limits.maxBatchBytes} are accepted`
    return { error, isRetryable: false }
  }
  const appendTo = (queueId: number, pinned: boolean, lookBackMs?: number) =>
    core.append({
      topicName: topic.name,
      queueId,
      publishId,
      retentionMs: topic.retentionMs,
      pinned,
      count: cut.count,
      codec: cut.codec,
      bytes: cut.bytes,
      ...(lookBackMs !== undefined && { lookBackMs }),
    })
  const { queueId, result } = await route(core, snapshot, request, placement, publishId, appendTo)
  switch (result.outcome) {
    case 'stored': {
      const { base, appendedAtMs } = result
      const expiresAtMs = appendedAtMs + topic.retentionMs
      core.reader.remember(queueId, { base, count: cut.count, appendedAtMs, expiresAtMs, text: cut.text })
      core.arrivals.announce(queueArrival(queueId))
      return { queueId, offset: base }
    }
    case 'found':
      return { queueId, offset: result.base }
    case 'throttled':
    case 'contended':
      return { error: 'the store asks for a slower pace', isRetryable: true }
    case 'unknown':
      return { error: '消息保存失败！', isRetryable: request.publishId != null }
  }
}

type Routed = { queueId: number; result: AppendResult }

/** Retried publishes without an age look back as far as a client's patience may reach. */
const defaultLookBackMs = 15 * 60_000

/** Chooses the queue: the one that the messages are pinned to, or the first that is not contended. */
async function route(
  core: Core,
  snapshot: TopicSnapshot,
  request: PublishRequest,
  placement: Placement,
  publishId: string,
  appendTo: (queueId: number, pinned: boolean, lookBackMs?: number) => Promise<AppendResult>,
): Promise<Routed> {
  const topicName = snapshot.topic.name
  const isRetry = (request.attempt ?? 1) > 1
  const lookBackMs = isRetry ? (request.attemptAgeMs ?? defaultLookBackMs) : undefined
  if (placement.queueId !== undefined) {
    return { queueId: placement.queueId, result: await appendTo(placement.queueId, true, lookBackMs) }
  }
  const candidates = orderCandidates(core, snapshot, request.queueId ?? undefined)
  const first = candidates[0]
  if (first === undefined) throw new RangeError(`topic ${topicName} has no writable queue`)
  if (lookBackMs !== undefined) {
    // An earlier attempt may have moved to any queue. Found there, it is done; else this one stays where it begins.
    const others = snapshot.queues.filter(queue => queue.queueId !== first)
    for (const { queueId } of others) {
      const found = await findPublish(core, queueId, publishId, lookBackMs)
      if (found) return { queueId, result: { outcome: 'found', base: found.base } }
    }
    return { queueId: first, result: await appendTo(first, true, lookBackMs) }
  }
  for (const [tried, queueId] of candidates.entries()) {
    const isLast = tried === candidates.length - 1
    const result = await appendTo(queueId, isLast)
    if (result.outcome === 'contended') continue
    core.preferredQueues.set(topicName, queueId)
    return { queueId, result }
  }
  return { queueId: first, result: { outcome: 'contended' } }
}

/** The writable queues, from the wanted or preferred one on; a container without a preference begins anywhere. */
function orderCandidates(core: Core, snapshot: TopicSnapshot, wanted: number | undefined): number[] {
  const writable = snapshot.queues.filter(queue => !queue.readOnly).map(queue => queue.queueId)
  const known = [wanted, core.preferredQueues.get(snapshot.topic.name)].find(
    id => id !== undefined && writable.includes(id),
  )
  const start = known === undefined ? Math.floor(core.random() * writable.length) : writable.indexOf(known)
  return [...writable.slice(start), ...writable.slice(0, start)]
}
