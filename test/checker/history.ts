import type { CommitResult } from '../../core/protocol/commit.ts'

/**
 * What clients did and saw, as a list of events. The checker goes by their order alone, so record an `…Invoke` before
 * the call goes out and the outcome after its answer is in. An operation without an outcome, like one with `…Info`, may
 * or may not have taken effect. Values are strings, unique per message; offsets are as the service counts them, from 1.
 */
export type HistoryEvent = Stamp & EventBody
export type EventType = EventBody['type']
export type EventOf<T extends EventType> = Extract<HistoryEvent, { type: T }>

/** `seq` is the event's place in the history. `client` is whoever acted: for pulls and commits, the consumer. */
type Stamp = { seq: number; at: number; client: string }

/** `op` is the `seq` of the event that began the operation. */
type EventBody =
  | { type: 'publish-invoke'; topic: string; publishId: string; attempt: number; messages: SentMessage[] }
  | { type: 'publish-ok'; op: number; placed: PlacedMessage[] }
  /** None of these values was stored by this attempt, for certain. */
  | { type: 'publish-fail'; op: number; values: string[] }
  | { type: 'publish-info'; op: number }
  /** All of these values are stored; the answer does not say where. */
  | { type: 'publish-stored'; op: number }
  /** `from` is exclusive: the last offset that the consumer had. `skipped`: as the answer counts them. */
  | ({ type: 'pull-ok'; from: number; messages: ReadMessage[]; skipped: number } & Assigned)
  | ({ type: 'handle-start' } & Handled)
  | ({ type: 'handle-end'; outcome: HandleOutcome } & Handled)
  | ({ type: 'commit-invoke'; offset: number } & Assigned)
  /** `offsetVersion`: the one in force after the commit, where the answer tells it. */
  | { type: 'commit-ok'; op: number; outcome: CommitResult['outcome']; offsetVersion?: number }
  | { type: 'commit-info'; op: number }
  /** A consumer was told that it owns the queue, and the offset to go on from. */
  | ({ type: 'assignment-gained'; offset: number; ordering?: Ordering } & Assigned)
  /** A consumer was told that the owner before it was lost with this message alone in hand. */
  | { type: 'suspected'; group: string; queueId: number; offset: number }
  /** A consumer has stopped and given the queue up: nothing under this offsetVersion may follow from it. */
  | ({ type: 'assignment-lost' } & Assigned)
  /** Somebody sets a group's offset. Also records where a new group begins, if that is not 0. */
  | { type: 'reset-invoke'; group: string; queueId: number; offset: number }
  /** `offset`: where it led to, if that was not known when it was asked for; the invoke then has the highest that it can be. */
  | { type: 'reset-ok'; op: number; offsetVersion?: number; offset?: number }
  /**
   * A group gets a place in a queue behind `offset`: to it, what is below was never there. A group that ends a subscription
   * and begins it anew has another place, named `group@name`, whose offsetVersions count for themselves.
   */
  | { type: 'begins'; group: string; queueId: number; offset: number }
  /** What is sent to these topics (default: all) from here on is the group's. Recorded when it is promised. */
  | { type: 'subscribed'; group: string; topic?: string }
  /** What is sent to the topic is not promised to the group, nor is what it has not handled yet. Recorded before that is asked. */
  | { type: 'unsubscribed'; group: string; topic: string }
  /** A group may from now on work through a topic by these rules: recorded before they are asked for. */
  | ({ type: 'retry-rules' } & RetryRules)
  /** From here on the offsets up to `upTo` may be gone: recorded before the clock passes their retention. */
  | { type: 'trim'; queueId: number; upTo: number }
  /**
   * The topic's queues are about to change, or just have: recorded before and after, since keys may then move. Unless
   * `isSettled` some publish may still go by the former ones, until the next such event.
   */
  | { type: 'queues-changed'; topic: string; isSettled: boolean }
  /** The client is gone with all that it had in hand. It may come back under its name. */
  | { type: 'crashed' }
  /** The group has been given all that was acknowledged until here (to these topics; default: to all). */
  | { type: 'drained'; group: string; topics?: string[] }

/** `key`, where it is what chose the queue. `failureOf`: it is a copy of a message that failed, for the fail topic. */
export type SentMessage = { value: string; key?: string; failureOf?: FailedMessage }
/** Which message failed, as whom it was handled, and how often it has failed by now. */
export type FailedMessage = Assigned & { offset: number; retryCount: number }
/** What keeps its order in an assignment: calls begin in the order of the queue, or of each key, one at a time. */
export type Ordering = 'queue' | 'key'
/**
 * What becomes of what fails. `failTopic`: its name; `hasFailTopic`: it is there. A failed message is handled `retryCount`
 * times more. `atOnce`: so many messages of a queue may be in hand at once, `atOnceRetried` of a queue of the fail topic.
 */
export type RetryRules = {
  group: string
  topic: string
  failTopic: string
  hasFailTopic: boolean
  retryCount: number
  retryInPlace: boolean
  atOnce: number
  atOnceRetried: number
}
export type PlacedMessage = { value: string; queueId: number; offset: number }
export type ReadMessage = { offset: number; value: string }
/** `moved`: failed and stored in the fail topic. `filtered`: not for this group. `failed`: to be delivered again. */
export type HandleOutcome = 'ok' | 'moved' | 'filtered' | 'failed'
export type Assigned = { group: string; queueId: number; offsetVersion: number }
export type Handled = { group: string; queueId: number; offset: number; value: string }

type Publish = { messages: SentMessage[]; publishId?: string; attempt?: number; topic?: string }
type Pull = { queueId: number; from: number; messages: ReadMessage[]; skipped?: number } & Partial<Assigned>
type CommitAnswer = { outcome: CommitResult['outcome']; offsetVersion?: number }
type Reset = { group: string; queueId: number; offset: number }

export type History = ReturnType<typeof createHistory>

/** Records a history. `onEvent` sees each event as it is recorded, for a process that may not live to the end. */
export function createHistory(now: () => number, onEvent: (event: HistoryEvent) => void = () => {}) {
  const events: HistoryEvent[] = []

  function append(client: string, body: EventBody): number {
    const event = { seq: events.length, at: now(), client, ...body }
    events.push(event)
    onEvent(event)
    return event.seq
  }

  function valuesOf(op: number): string[] {
    const invoke = events[op]
    if (invoke?.type !== 'publish-invoke') throw new Error(`event ${op} is no publish-invoke`)
    return invoke.messages.map(message => message.value)
  }

  return {
    events: events as readonly HistoryEvent[],

    /** Returns the operation, for its outcome. Without a `publishId` each call is a publish of its own. */
    publishInvoke(client: string, publish: Publish) {
      const defaults = { topic: 'topic', publishId: `${client}/${events.length}`, attempt: 1 }
      return append(client, { type: 'publish-invoke', ...defaults, ...publish })
    },
    /** Where the values are, as the answer says; values that it does not name stay unknown. */
    publishOk: (client: string, op: number, placed: PlacedMessage[]) =>
      append(client, { type: 'publish-ok', op, placed }),
    publishFail: (client: string, op: number, values = valuesOf(op)) =>
      append(client, { type: 'publish-fail', op, values }),
    publishInfo: (client: string, op: number) => append(client, { type: 'publish-info', op }),
    publishStored: (client: string, op: number) => append(client, { type: 'publish-stored', op }),

    /** A reader without a group is a group of its own. */
    pullOk: (client: string, pull: Pull) =>
      append(client, { type: 'pull-ok', group: client, offsetVersion: 0, skipped: 0, ...pull }),
    handleStart: (client: string, handled: Handled) => append(client, { type: 'handle-start', ...handled }),
    handleEnd: (client: string, handled: Handled, outcome: HandleOutcome) =>
      append(client, { type: 'handle-end', ...handled, outcome }),

    commitInvoke: (client: string, commit: Assigned & { offset: number }) =>
      append(client, { type: 'commit-invoke', ...commit }),
    commitOk: (client: string, op: number, answer: CommitAnswer) =>
      append(client, { type: 'commit-ok', op, ...answer }),
    commitInfo: (client: string, op: number) => append(client, { type: 'commit-info', op }),

    assignmentGained: (client: string, assigned: Assigned & { offset: number; ordering?: Ordering }) =>
      append(client, { type: 'assignment-gained', ...assigned }),
    suspected: (client: string, suspect: Reset) => append(client, { type: 'suspected', ...suspect }),
    assignmentLost: (client: string, assigned: Assigned) => append(client, { type: 'assignment-lost', ...assigned }),

    resetInvoke: (client: string, reset: Reset) => append(client, { type: 'reset-invoke', ...reset }),
    resetOk: (client: string, op: number, answer: { offsetVersion?: number; offset?: number } = {}) =>
      append(client, { type: 'reset-ok', op, ...answer }),

    retryRules: (client: string, rules: RetryRules) => append(client, { type: 'retry-rules', ...rules }),
    trim: (client: string, trim: { queueId: number; upTo: number }) => append(client, { type: 'trim', ...trim }),
    begins: (client: string, begin: Reset) => append(client, { type: 'begins', ...begin }),
    subscribed: (client: string, group: string, topic?: string) =>
      append(client, { type: 'subscribed', group, ...(topic !== undefined && { topic }) }),
    unsubscribed: (client: string, group: string, topic: string) =>
      append(client, { type: 'unsubscribed', group, topic }),
    queuesChanged: (client: string, topic: string, isSettled = true) =>
      append(client, { type: 'queues-changed', topic, isSettled }),
    crashed: (client: string) => append(client, { type: 'crashed' }),
    drained: (client: string, drained: { group: string; topics?: string[] }) =>
      append(client, { type: 'drained', ...drained }),
  }
}
