import type { ClaimResponse } from '../../../core/protocol/claims.ts'
import type { CommitEntry, CommitRequest, CommitResponse } from '../../../core/protocol/commit.ts'
import type { FailuresRequest, FailuresResponse } from '../../../core/protocol/failures.ts'
import type { AssignedQueue, PollResponse, RegisterGroupResponse } from '../../../core/protocol/membership.ts'
import type { PublishRequest, PublishResponse } from '../../../core/protocol/publish.ts'
import type { PullRequest, PullResponse } from '../../../core/protocol/pull.ts'
import type { ClientEvent } from '../../../sdk/src/events.ts'
import type { Transport } from '../../../sdk/src/transport.ts'
import type { History } from '../../checker/history.ts'

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
  /** Something happened that no fault excuses. */
  onDefect(what: string): void
}

export function createRecorder(
  history: History,
  queueIds: Map<number, number>,
  onDefect: Recorder['onDefect'],
  isRenamed = false,
): Recorder {
  const first = new Set(queueIds.keys())
  const begun = new Set<string>()
  return {
    history,
    queueIds,
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

/** What a consumer does and sees, as it goes over its transport and as its events tell. */
export function recordConsumer(recorder: Recorder, client: string, transport: Transport) {
  const { history, queueIds, onDefect } = recorder
  /** Queue → the assignments that are worked on; two, if the subscription has begun anew. The newest is the last. */
  const held = new Map<number, Held[]>()
  /** Queues of fail topics. What happens there has no part in the history: it is of messages that the group has in hand again. */
  const failQueueIds = new Set<number>()
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
    if (path.endsWith('/publishAndUpdateResultFailMsg')) return fail(path, request as FailuresRequest, options)
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
    for (const { queueId, queueOffsetId, topicType } of Object.values(queues ?? {})) {
      if (topicType === 2) failQueueIds.add(queueId)
      queueIds.set(queueOffsetId, queueId)
      told.set(queueId, queueOffsetId)
    }
  }

  function notePull({ queueId = 0, offsetStart: from = 0 }: PullRequest, answer: PullResponse) {
    const assigned = held.get(queueId)?.at(-1)
    if (!answer.suc || !assigned) return
    const messages = (answer.batches ?? []).flatMap(({ offset, msgs }) =>
      msgs.map(({ body }, index) => ({ offset: offset + index, value: body })),
    )
    const news = messages.filter(({ offset }) => offset > from)
    const skipped = answer.skipped ?? 0
    if (news.length > 0 || skipped > 0) history.pullOk(client, { ...assigned, from, messages: news, skipped })
  }

  async function commit(path: string, request: CommitRequest, options: Parameters<Transport>[2]) {
    const ofTopics = (request.queueOffsets ?? []).filter(
      entry => !failQueueIds.has(queueIds.get(entry.queueOffsetId) ?? 0),
    )
    const ops = new Map(ofTopics.map(entry => [entry.queueOffsetId, beginCommit(entry)]))
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

  /** A message is done with, where it failed, when the fail topic has it: that is one more way to handle it. */
  async function fail(path: string, request: FailuresRequest, options: Parameters<Transport>[2]) {
    const { queueId = 0, failMsg } = request
    const group = lastNames.get(queueId ?? 0) ?? ''
    const all = failQueueIds.has(queueId ?? 0) ? [] : (failMsg?.msgs ?? [])
    const messages = all.map(({ id, body: value }) => ({ group, queueId: queueId ?? 0, offset: id ?? 0, value }))
    for (const message of messages) history.handleStart(client, message)
    let result: 'ok' | 'failed' = 'failed'
    try {
      const answer = (await transport(path, request, options)) as FailuresResponse
      if (answer.suc) result = 'ok'
      return answer
    } finally {
      for (const message of messages) history.handleEnd(client, message, result)
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
        if (failQueueIds.has(queueId)) return
        const group = recorder.placeName(event.groupName, told.get(queueId) ?? 0)
        const assigned = { group, queueId, offsetVersion }
        held.set(queueId, [...(held.get(queueId) ?? []), assigned])
        lastNames.set(queueId, group)
        recorder.notePlace(client, { group, queueId, offset })
        return history.assignmentGained(client, { ...assigned, offset })
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
    missed,
    /** What the place in a queue is called from which a message has come; undefined for one of a fail topic. */
    nameAt: (queueId: number, otherwise: string) =>
      failQueueIds.has(queueId) ? undefined : (lastNames.get(queueId) ?? otherwise),
    groupName: () => groupName,
    hasExpired: () => hasExpired,
    isReplaced: () => isReplaced,
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
