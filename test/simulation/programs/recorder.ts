import type { CommitEntry, CommitRequest, CommitResponse } from '../../../core/protocol/commit.ts'
import type { PublishRequest, PublishResponse } from '../../../core/protocol/publish.ts'
import type { PullRequest, PullResponse } from '../../../core/protocol/pull.ts'
import type { ClientEvent } from '../../../sdk/src/events.ts'
import type { Transport } from '../../../sdk/src/transport.ts'
import type { History } from '../../checker/history.ts'

export type Recorder = {
  history: History
  /** Which queue a `queueOffsetId` stands for. */
  queueIds: Map<number, number>
  /** Something happened that no fault excuses. */
  onDefect(what: string): void
}

/** What a consumer does and sees, as it goes over its transport and as its events tell. */
export function recordConsumer({ history, queueIds, onDefect }: Recorder, client: string, transport: Transport) {
  /** Queue → the assignment that is worked on. */
  const held = new Map<number, { group: string; queueId: number; offsetVersion: number }>()

  const recorded: Transport = async (path, request, options) => {
    if (path.endsWith('/commitOffset')) return commit(path, request as CommitRequest, options)
    const answer = await transport(path, request, options)
    if (path.endsWith('/pullData')) notePull(request as PullRequest, answer as PullResponse)
    return answer
  }

  function notePull({ queueId = 0, offsetStart: from = 0 }: PullRequest, answer: PullResponse) {
    const assigned = held.get(queueId)
    if (!answer.suc || !assigned) return
    const messages = (answer.batches ?? []).flatMap(({ offset, msgs }) =>
      msgs.map(({ body }, index) => ({ offset: offset + index, value: body })),
    )
    const news = messages.filter(({ offset }) => offset > from)
    const skipped = answer.skipped ?? 0
    if (news.length > 0 || skipped > 0) history.pullOk(client, { ...assigned, from, messages: news, skipped })
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

  function beginCommit({ queueOffsetId, consumerGroupName: group, offset, offsetVersion }: CommitEntry): number {
    return history.commitInvoke(client, { group, queueId: queueIds.get(queueOffsetId) ?? 0, offset, offsetVersion })
  }

  function lose(queueId: number) {
    const assigned = held.get(queueId)
    if (assigned) history.assignmentLost(client, assigned)
    held.delete(queueId)
  }

  function onEvent(event: ClientEvent) {
    switch (event.type) {
      case 'assigned': {
        const { groupName: group, queueId, offset, offsetVersion } = event
        const assigned = { group, queueId, offsetVersion }
        held.set(queueId, assigned)
        return history.assignmentGained(client, { ...assigned, offset })
      }
      case 'revoked':
      case 'fenced':
      case 'reset':
        return lose(event.queueId)
      case 'expired':
      case 'deregistered':
        for (const queueId of [...held.keys()]) lose(queueId)
        return
      case 'request_failed':
        noteFailure(client, event, onDefect)
    }
  }

  return { transport: recorded, onEvent }
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
    },
    /** The SDK says that a message is certainly not stored. */
    notStored(value: string) {
      for (const op of attempts.get(value) ?? []) history.publishFail(client, op, [value])
    },
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
