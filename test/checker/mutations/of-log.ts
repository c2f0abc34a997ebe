import { trimmedAt } from '../facts.ts'
import type { EventOf } from '../history.ts'
import { all, append, type Broken, blank, headOf, isReadBy, leaveOut, type Mutation } from './mutation.ts'

/** What could go wrong in a log: between producers and readers. */
export const logMutations: Mutation[] = [
  {
    name: 'a pull leaves a message out',
    expected: ['P2', 'Q04'],
    candidates: history =>
      midPull(history).map(
        ({ pull, offset }) =>
          () =>
            leaveOut(pull, offset),
      ),
  },
  {
    name: 'an offset is never given out',
    expected: ['P2'],
    candidates: history =>
      midPull(history).map(
        ({ pull, offset }) =>
          () =>
            shiftFrom(history, pull.queueId, offset),
      ),
  },
  {
    name: 'two messages of a publish are acknowledged at one offset',
    expected: ['P2'],
    candidates: history =>
      pairsAcked(history).map(
        ([first, second]) =>
          () =>
            Object.assign(second, { offset: first.offset }),
      ),
  },
  {
    name: 'two offsets are swapped in an acknowledgement',
    expected: ['Q03'],
    candidates: history =>
      pairsAcked(history)
        .filter(([first]) => all(history, 'pull-ok').some(pull => isReadBy(pull, first)))
        .map(([first, second]) => () => {
          const { offset } = first
          first.offset = second.offset
          second.offset = offset
        }),
  },
  {
    name: 'two values are swapped in a pull',
    expected: ['Q03'],
    candidates: history =>
      all(history, 'pull-ok').flatMap(({ queueId, messages: [first, second] }) => {
        if (!first || !second || !history.facts.queues.get(queueId)?.get(first.offset)?.ack) return []
        const { value } = first
        return [() => Object.assign(first, { value: second.value }) && Object.assign(second, { value })]
      }),
  },
  {
    name: 'a value is stored again',
    expected: ['P8'],
    candidates: history =>
      history.places.map(({ queueId, value, known }) => () => {
        const from = headOf(history, queueId)
        const reader = { group: 'late', queueId, offsetVersion: 0, from, skipped: 0 }
        append(history, { ...known, ...reader, type: 'pull-ok', messages: [{ offset: from + 1, value }] }, 'late')
      }),
  },
  {
    name: 'a value is read that nobody sent',
    expected: ['Q02'],
    candidates: history =>
      all(history, 'pull-ok').flatMap(({ messages }) =>
        messages.map(message => () => Object.assign(message, { value: 'ghost' })),
      ),
  },
  {
    name: 'a publish that was read is answered with a failure',
    expected: ['Q02'],
    candidates: history =>
      history.places.flatMap(({ queueId, offset, value, publish }) => {
        const isRead = all(history, 'pull-ok').some(pull => isReadBy(pull, { queueId, offset }))
        if (!publish || publish.attempts.length > 1 || !isRead) return []
        const { seq } = publish.invoke
        return [
          () => {
            for (const ok of all(history, 'publish-ok')) if (ok.op === seq) blank(history, ok)
            append(history, { ...publish.invoke, type: 'publish-fail', op: seq, values: [value] })
          },
        ]
      }),
  },
  {
    name: 'a message is below one that its producer had sent before',
    expected: ['P3/Q05'],
    candidates: history => exchanges(history, (sender, other) => sender === other),
  },
  {
    name: 'a message is below one that another producer had sent before',
    expected: ['Q04', 'P3/Q05'],
    candidates: history => exchanges(history, (sender, other) => sender !== other),
  },
]

/** Offsets that a pull gave, before its last one, and that retention does not excuse. */
function midPull(history: Broken): { pull: EventOf<'pull-ok'>; offset: number }[] {
  return all(history, 'pull-ok').flatMap(pull => {
    const trimmed = trimmedAt(history.facts, pull.queueId, pull.seq)
    const due = pull.messages.slice(0, -1).filter(({ offset }) => offset > trimmed)
    return due.map(({ offset }) => ({ pull, offset }))
  })
}

function pairsAcked(history: Broken) {
  return all(history, 'publish-ok').flatMap(({ placed: [first, second] }) =>
    first && second ? [[first, second] as const] : [],
  )
}

/** Moves everything from `offset` on up by one, for everybody. */
function shiftFrom(history: Broken, queueId: number, offset: number) {
  const shifted = (position: number, first = offset) => (position >= first ? position + 1 : position)
  for (const { placed } of all(history, 'publish-ok')) {
    for (const message of placed) if (message.queueId === queueId) message.offset = shifted(message.offset)
  }
  const inQueue = all(history, 'pull-ok', 'handle-start', 'handle-end', 'commit-invoke', 'assignment-gained', 'trim')
  for (const event of inQueue.filter(event => event.queueId === queueId)) {
    if (event.type === 'trim') event.upTo = shifted(event.upTo)
    else if (event.type === 'pull-ok') {
      event.from = shifted(event.from)
      for (const message of event.messages) message.offset = shifted(message.offset)
    } else event.offset = shifted(event.offset)
  }
}

/** Messages of which one was acknowledged before the other was sent: everybody sees them the other way round. */
function exchanges(history: Broken, isWanted: (sender: string, other: string) => boolean): (() => void)[] {
  const { places } = history
  return places.flatMap(({ queueId, offset, value, ack, publish }) => {
    if (!ack || !publish) return []
    const later = places.find(
      other =>
        other.queueId === queueId &&
        other.ack !== undefined &&
        other.publish !== undefined &&
        other.publish.invoke.seq > ack.seq &&
        isWanted(publish.invoke.client, other.publish.invoke.client),
    )
    return later ? [() => exchange(history, { queueId, offset, value }, later)] : []
  })
}

type Message = { queueId: number; offset: number; value: string }

function exchange(history: Broken, a: Message, b: Message) {
  const offsets = new Map<string, number>().set(a.value, b.offset).set(b.value, a.offset)
  const values = new Map<number, string>().set(a.offset, b.value).set(b.offset, a.value)
  for (const { placed } of all(history, 'publish-ok')) {
    for (const message of placed) message.offset = offsets.get(message.value) ?? message.offset
  }
  for (const { queueId, messages } of all(history, 'pull-ok')) {
    if (queueId !== a.queueId) continue
    for (const message of messages) message.value = values.get(message.offset) ?? message.value
  }
  for (const handled of all(history, 'handle-start', 'handle-end')) {
    if (handled.queueId === a.queueId) handled.value = values.get(handled.offset) ?? handled.value
  }
}
