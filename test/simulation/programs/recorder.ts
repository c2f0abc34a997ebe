import type { ClaimResponse } from '../../../core/protocol/claims.ts'
import type { CommitEntry, CommitRequest, CommitResponse } from '../../../core/protocol/commit.ts'
import type { FailuresRequest, FailuresResponse } from '../../../core/protocol/failures.ts'
import type { AssignedQueue, PollResponse, RegisterGroupResponse } from '../../../core/protocol/membership.ts'
import type { PublishRequest, PublishResponse } from '../../../core/protocol/publish.ts'
import type { PullRequest, PullResponse } from '../../../core/protocol/pull.ts'
import type { ClientEvent } from '../../../sdk/src/events.ts'
import type { Transport } from '../../../sdk/src/transport.ts'
import type { History, Ordering } from '../../checker/history.ts'
import { createDelays, type Delays } from './delays.ts'
import { type FailurePlan, isFiltered } from './fates.ts'

export type Recorder = {
  history: History
  /** Which queue a `queueOffsetId` stands for. */
  queueIds: Map<number, number>
  /**
   * What a group's place in a queue is called in the history: as the group, unless subscriptions end and begin anew. Then
   * each that was not there from the beginning has a name of its own, since it begins anew too.
   */
  placeName(groupName: string, queueOffsetId: number): string
  /** Records that a place is worked on under this name, once: where it begins, if that need not be 0. */
  notePlace(client: string, place: { group: string; queueId: number; offset: number }): void
  /** Queues of fail topics, and whose they are. */
  failQueues: Map<number, string>
  /** Which fail topic a queue is of; undefined: of none. */
  failTopicOf(queueId: number): string | undefined
  /** What a message is called in the history: each copy in a fail topic by a name of its own. */
  valueOf(queueId: number, message: { body: string; retryCount?: number | null | undefined }): string
  /** Places in fail queues whose messages the service knows to have been handled, as it has answered: `queue/offset`. */
  confirmed: Set<string>
  delays: Delays
  /** Messages have a tag, by which groups select some. */
  isTagged: boolean
  /** Something happened that no fault excuses. */
  onDefect(what: string): void
}

/** What a message is called that has failed so often, in the fail topic. */
const copyName = (failTopicName: string, body: string, retryCount: number) => `${failTopicName}#${retryCount}/${body}`

/** The body of a message, by its name. */
export const bodyOf = (value: string) => value.replace(/^[^/]*_fail#\d+\//, '')

export function createRecorder(
  history: History,
  queueIds: Map<number, number>,
  onDefect: Recorder['onDefect'],
  { isRenamed = false, isTagged = false } = {},
): Recorder {
  const first = new Set(queueIds.keys())
  const begun = new Set<string>()
  const failQueues = new Map<number, string>()
  return {
    history,
    queueIds,
    failQueues,
    isTagged,
    confirmed: new Set(),
    delays: createDelays(),
    failTopicOf: queueId => failQueues.get(queueId),
    valueOf(queueId, { body, retryCount }) {
      const failTopicName = failQueues.get(queueId)
      return failTopicName === undefined ? body : copyName(failTopicName, body, retryCount ?? 0)
    },
    placeName: (groupName, queueOffsetId) =>
      isRenamed && !first.has(queueOffsetId) ? `${groupName}@${queueOffsetId}` : groupName,
    notePlace(client, { group, queueId, offset }) {
      const isOriginal = !group.includes('@') && !group.includes('~')
      if (isOriginal || begun.has(`${queueId}/${group}`)) return
      begun.add(`${queueId}/${group}`)
      history.begins(client, { group, queueId, offset })
    },
    onDefect,
  }
}

/** A queue as somebody works on it, by the names of the history. */
export type Held = { group: string; queueId: number; offsetVersion: number }

/** What is known of a consumer besides: what keeps its order, and how its group fails. */
export type ConsumerTraits = { ordering?: Ordering | undefined; failures?: FailurePlan | undefined }

/** What a consumer does and sees, as it goes over its transport and as its events tell. */
export function recordConsumer(
  recorder: Recorder,
  client: string,
  transport: Transport,
  { ordering, failures }: ConsumerTraits = {},
) {
  const { history, queueIds, onDefect } = recorder
  const sendFailures = recordFailures(recorder, client, transport)
  /** Queue → the assignments that are worked on; two, if the subscription has begun anew. The newest is the last. */
  const held = new Map<number, Held[]>()
  /** Queue → the place that the service has told last. */
  const told = new Map<number, number>()
  /** Queue → the name of the place that was worked on last. */
  const lastNames = new Map<number, string>()
  /** What its group is called for this consumer; undefined while it is no member. */
  let groupName: string | undefined
  let hasExpired = false
  let isReplaced = false
  const missed: string[] = []

  const recorded: Transport = async (path, request, options) => {
    if (path.endsWith('/commitOffset')) return commit(path, request as CommitRequest, options)
    if (path.endsWith('/publishAndUpdateResultFailMsg')) return sendFailures(path, request as FailuresRequest, options)
    const answer = await transport(path, request, options)
    if (path.endsWith('/pullData')) notePull(request as PullRequest, answer as PullResponse)
    if (path.endsWith('/getConsumerGroupPolling')) noteAssignment(answer as PollResponse)
    if (path.endsWith('/claimQueues')) noteQueues((answer as ClaimResponse).queues)
    if (path.endsWith('/registerConsumerGroup')) noteMembership(answer as RegisterGroupResponse)
    return answer
  }

  /** A copy of a broadcast group gets everything from here on. */
  function noteMembership({ suc, consumerGroupNameNew }: RegisterGroupResponse) {
    for (const copyName of suc ? Object.values(consumerGroupNameNew ?? {}) : []) history.subscribed(client, copyName)
  }

  function noteAssignment({ consumerGroups }: PollResponse) {
    for (const { queues } of Object.values(consumerGroups ?? {})) noteQueues(queues)
  }

  function noteQueues(queues: Record<string, AssignedQueue> | undefined) {
    for (const { queueId, queueOffsetId, topicName, topicType } of Object.values(queues ?? {})) {
      queueIds.set(queueOffsetId, queueId)
      if (topicType === 2) recorder.failQueues.set(queueId, topicName)
      told.set(queueId, queueOffsetId)
    }
  }

  function notePull({ queueId = 0, offsetStart: from = 0 }: PullRequest, answer: PullResponse) {
    const assigned = held.get(queueId)?.at(-1)
    if (!answer.suc || !assigned) return
    const messages = (answer.batches ?? []).flatMap(({ offset, msgs }) =>
      msgs.map((message, index) => ({ offset: offset + index, value: recorder.valueOf(queueId, message) })),
    )
    const news = messages.filter(({ offset }) => offset > from)
    const skipped = answer.skipped ?? 0
    if (news.length > 0 || skipped > 0) history.pullOk(client, { ...assigned, from, messages: news, skipped })
    for (const { offset, value } of news) {
      if (!isFiltered(failures, bodyOf(value))) continue
      history.handleEnd(client, { group: assigned.group, queueId, offset, value }, 'filtered')
    }
  }

  async function commit(path: string, request: CommitRequest, options: Parameters<Transport>[2]) {
    const ops = new Map((request.queueOffsets ?? []).map(entry => [entry.queueOffsetId, beginCommit(entry)]))
    try {
      const answer = (await transport(path, request, options)) as CommitResponse
      for (const { queueOffsetId, outcome, offsetVersion } of answer.results ?? []) {
        const op = ops.get(queueOffsetId)
        if (op === undefined) continue
        history.commitOk(client, op, { outcome, ...(offsetVersion !== undefined && { offsetVersion }) })
      }
      return answer
    } catch (error) {
      for (const op of ops.values()) history.commitInfo(client, op)
      throw error
    }
  }

  function beginCommit({ queueOffsetId, consumerGroupName, offset, offsetVersion }: CommitEntry): number {
    const group = recorder.placeName(consumerGroupName, queueOffsetId)
    return history.commitInvoke(client, { group, queueId: queueIds.get(queueOffsetId) ?? 0, offset, offsetVersion })
  }

  /** Of two assignments of a queue the earlier one ends first. */
  function lose(queueId: number, isMeant: (assigned: Held) => boolean) {
    const assigned = held.get(queueId) ?? []
    const at = assigned.findIndex(isMeant)
    for (const lost of at < 0 ? [] : assigned.splice(at, 1)) history.assignmentLost(client, lost)
  }

  function onEvent(event: ClientEvent) {
    switch (event.type) {
      case 'assigned': {
        const { queueId, offset, offsetVersion } = event
        const group = recorder.placeName(event.groupName, told.get(queueId) ?? 0)
        const assigned = { group, queueId, offsetVersion }
        held.set(queueId, [...(held.get(queueId) ?? []), assigned])
        lastNames.set(queueId, group)
        recorder.notePlace(client, { group, queueId, offset })
        return history.assignmentGained(client, { ...assigned, offset, ...(ordering && { ordering }) })
      }
      case 'careful': {
        const { queueId, suspectOffset: offset } = event
        const group = lastNames.get(queueId)
        if (offset !== undefined && group !== undefined) history.suspected(client, { group, queueId, offset })
        return
      }
      case 'revoked':
      case 'kept':
      case 'removed':
      case 'fenced':
        return lose(event.queueId, ({ offsetVersion }) => offsetVersion === event.offsetVersion)
      case 'reset':
        return lose(event.queueId, ({ offsetVersion }) => offsetVersion < event.offsetVersion)
      case 'registered':
        groupName = event.groupName
        return
      case 'replaced':
        isReplaced = true
        return
      case 'expired':
      case 'deregistered':
        hasExpired ||= event.type === 'expired'
        groupName = undefined
        for (const [queueId, all] of held) for (const _ of [...all]) lose(queueId, () => true)
        return
      case 'settings_differ':
        missed.push(event.names.join(', '))
        return
      case 'request_failed':
        noteFailure(client, event, onDefect)
    }
  }

  return {
    transport: recorded,
    onEvent,
    /** What the place in a queue is called from which a message has come. */
    nameAt: (queueId: number, otherwise: string) => lastNames.get(queueId) ?? otherwise,
    groupName: () => groupName,
    hasExpired: () => hasExpired,
    isReplaced: () => isReplaced,
    missed,
  }
}

/** What a consumer sends to fail topics, attempt by attempt. */
function recordFailures(recorder: Recorder, client: string, transport: Transport) {
  const { history } = recorder
  /** A place and what fails there first → the publish of it that is under way, whatever publishId the SDK gives it. */
  const publishes = new Map<string, string>()

  return async (path: string, request: FailuresRequest, options: Parameters<Transport>[2]) => {
    const { consumerGroupName, queueId, queueOffsetId, offsetVersion, failMsg, ids } = request
    const noteConfirmed = (answer: FailuresResponse) => {
      for (const offset of answer.suc ? (ids ?? []) : []) recorder.confirmed.add(`${queueId}/${offset}`)
      return answer
    }
    if (!failMsg) return noteConfirmed((await transport(path, request, options)) as FailuresResponse)
    const topic = failMsg.topicName ?? ''
    const place = { queueId: queueId ?? 0, offsetVersion: offsetVersion ?? 0 }
    const group = recorder.placeName(consumerGroupName ?? '', queueOffsetId ?? 0)
    const messages = (failMsg.msgs ?? []).map(({ id, body, key, retryCount }) => ({
      value: copyName(topic, body, retryCount ?? 0),
      ...(key != null && { key }),
      failureOf: { ...place, group, offset: id ?? 0, retryCount: retryCount ?? 0 },
    }))
    const attempt = failMsg.attempt ?? 1
    const what = `${client}!${queueOffsetId}/${offsetVersion}/${messages[0]?.failureOf.offset}`
    const publishId = (attempt > 1 && publishes.get(what)) || `${what}/${history.events.length}`
    publishes.set(what, publishId)
    const op = history.publishInvoke(client, { topic, publishId, attempt, messages })
    try {
      const answer = noteConfirmed((await transport(path, request, options)) as FailuresResponse)
      if (answer.suc) history.publishStored(client, op)
      else if (answer.fenced) history.publishFail(client, op)
      else history.publishInfo(client, op)
      return answer
    } catch (error) {
      history.publishInfo(client, op)
      throw error
    }
  }
}

/** What a producer sends and is told, attempt by attempt. */
export function recordProducer({ history, onDefect }: Recorder, client: string, transport: Transport) {
  /** Value → the publish that it belongs to, whatever publishId the SDK gives it: each value is published once. */
  const publishes = new Map<string, string>()
  const attempts = new Map<string, number[]>()

  const recorded: Transport = async (path, request, options) =>
    path.endsWith('/publish') ? publish(path, request as PublishRequest, options) : transport(path, request, options)

  async function publish(path: string, request: PublishRequest, options: Parameters<Transport>[2]) {
    const messages = (request.msgs ?? []).map(({ body, key }) => ({ value: body, ...(key != null && { key }) }))
    const publishId = nameOf(messages.map(({ value }) => value))
    const topic = request.topicName ?? ''
    const op = history.publishInvoke(client, { topic, publishId, attempt: request.attempt ?? 1, messages })
    for (const { value } of messages) attempts.set(value, [...(attempts.get(value) ?? []), op])
    try {
      const answer = (await transport(path, request, options)) as PublishResponse
      const placed = (answer.offsets ?? []).flatMap(({ first, count, queueId, offset }) =>
        queueId === undefined || offset === undefined
          ? []
          : messages.slice(first, first + count).map(({ value }, i) => ({ value, queueId, offset: offset + i })),
      )
      if (placed.length > 0) history.publishOk(client, op, placed)
      return answer
    } catch (error) {
      history.publishInfo(client, op)
      throw error
    }
  }

  function nameOf(values: string[]): string {
    const known = values.map(value => publishes.get(value)).find(name => name !== undefined)
    const name = known ?? `${client}#${values[0]}`
    for (const value of values) publishes.set(value, name)
    return name
  }

  return {
    transport: recorded,
    onEvent(event: ClientEvent) {
      if (event.type === 'request_failed') noteFailure(client, event, onDefect)
    },
    /** The SDK says where a message is: whoever called it goes by that. */
    stored(value: string, queueId: number, offset: number) {
      const op = attempts.get(value)?.at(-1)
      if (op === undefined) onDefect(`${client} was told that "${value}" is stored, which was never sent`)
      else history.publishOk(client, op, [{ value, queueId, offset }])
      forget(value)
    },
    /** The SDK says that a message is certainly not stored. */
    notStored(value: string) {
      for (const op of attempts.get(value) ?? []) history.publishFail(client, op, [value])
      forget(value)
    },
    /** The SDK has given a message up, which may be stored or not. */
    neverKnown: forget,
  }

  /** It is not sent again. */
  function forget(value: string) {
    publishes.delete(value)
    attempts.delete(value)
  }
}

/** The service answers well or not at all here, so an answer that cannot be read is a fault of the reader. */
function noteFailure(
  client: string,
  { operation, error }: ClientEvent & { type: 'request_failed' },
  onDefect: (what: string) => void,
) {
  if (error.code === 'bad_answer') onDefect(`${client} could not read the answer to ${operation}: ${error.stack}`)
}
