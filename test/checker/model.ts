import fc from 'fast-check'
import {
  createHistory,
  type HandleOutcome,
  type History,
  type HistoryEvent,
  type ReadMessage,
  type SentMessage,
} from './history.ts'

/** One thing that happens to the model. `pick` and `size` choose what it happens to. */
export type Command = { act: (typeof acts)[number]; pick: number; size: number; fate: (typeof fates)[number] }

const acts = ['send', 'answer', 'resend', 'move', 'pull', 'handle', 'commit', 'work', 'crash', 'reset', 'trim'] as const
const fates = ['answered', 'answered', 'late', 'forgotten'] as const

export const scripts: fc.Arbitrary<Command[]> = fc.array(
  fc.record({
    act: fc.constantFrom(...acts, 'send', 'send', 'work', 'work', 'work'),
    pick: fc.nat(10_000),
    size: fc.integer({ min: 1, max: 5 }),
    fate: fc.constantFrom(...fates),
  }),
  { minLength: 20, maxLength: 120, size: 'max' },
)

/** The history of a small queue in memory that keeps every promise: first the script, then every group drains. */
export function runModel(script: readonly Command[]): HistoryEvent[] {
  let now = 0
  const history = createHistory(() => now++)
  const model = createModel(history)
  for (const command of script) model[command.act](command)
  model.drain()
  return structuredClone([...history.events])
}

type Log = { queueId: number; values: string[]; offsetOf: Map<string, number>; trimmed: number }
type Send = { client: string; publishId: string; messages: SentMessage[]; queueId: number }
type Owner = { client: string; offsetVersion: number; position: number; buffer: ReadMessage[]; isPulling: boolean }
/** Whoever thinks that he owns the queue is an owner; the store goes by `offsetVersion`. */
type Place = {
  at: { group: string; queueId: number }
  log: Log
  offset: number
  offsetVersion: number
  owners: Owner[]
}

function createModel(history: History) {
  const logs = [1, 2].map((queueId): Log => ({ queueId, values: [], offsetOf: new Map(), trimmed: 0 }))
  const places = ['g1', 'g2'].flatMap(group =>
    logs.map((log): Place => ({ at: { group, queueId: log.queueId }, log, offset: 0, offsetVersion: 0, owners: [] })),
  )
  const sends: Send[] = []
  /** Answers that are still under way. */
  const pending: (() => void)[] = []
  const answer = (fate: Command['fate'], record: () => void) => {
    if (fate === 'late') pending.push(record)
    else record()
  }

  /** Stores what is not stored yet; answers where the values are. */
  function store({ queueId, messages }: Send) {
    const { values, offsetOf } = pickOf(logs, queueId - 1)
    return messages.map(({ value }) => {
      const offset = offsetOf.get(value) ?? values.push(value)
      offsetOf.set(value, offset)
      return { value, queueId, offset }
    })
  }

  function attempt(send: Send, number: number, { pick, fate }: Command) {
    const { client, publishId, messages } = send
    const op = history.publishInvoke(client, { publishId, attempt: number, messages })
    if (fate !== 'forgotten') {
      const early = pick % 2 === 0 ? store(send) : undefined
      answer(fate, () => history.publishOk(client, op, early ?? store(send)))
    } else if (pick % 3 === 0) history.publishFail(client, op)
    else {
      if (pick % 3 === 1) store(send)
      history.publishInfo(client, op)
    }
  }

  function own(place: Place, client: string, fate: Command['fate']) {
    const { at, offset } = place
    const offsetVersion = ++place.offsetVersion
    answer(fate, () => {
      place.owners.push({ client, offsetVersion, position: offset, buffer: [], isPulling: false })
      history.assignmentGained(client, { ...at, offset, offsetVersion })
    })
  }

  const acting = ({ owners }: Place, pick: number) => owners.at(pick % 5 === 0 ? -2 : -1)

  return {
    send(command: Command) {
      const { pick, size } = command
      const n = sends.length
      const isKeyed = pick % 3 === 0
      const messages = Array.from({ length: size }, (_, index) => ({
        value: `v${n}.${index}`,
        ...(isKeyed ? { key: `k${pick % 2}` } : {}),
      }))
      const send = { client: `p${pick % 5}`, publishId: `id${n}`, messages, queueId: 1 + (pick % 2) }
      sends.push(send)
      attempt(send, 1, command)
    },
    answer({ pick }: Command) {
      pending.splice(pick % Math.max(1, pending.length), 1)[0]?.()
    },
    resend(command: Command) {
      if (sends.length > 0) attempt(pickOf(sends, command.pick), 2, command)
    },
    move({ pick, fate }: Command) {
      const place = pickOf(places, pick)
      const leaver = pick % 3 === 0 ? place.owners.pop() : undefined
      if (leaver) history.assignmentLost(leaver.client, { ...place.at, offsetVersion: leaver.offsetVersion })
      own(place, `c${pick % 7}`, fate)
    },
    pull({ pick, size, fate }: Command) {
      const place = pickOf(places, pick)
      const owner = acting(place, pick)
      if (!owner || owner.isPulling) return
      const { position: from, offsetVersion } = owner
      const start = Math.max(from, place.log.trimmed)
      const messages = place.log.values
        .slice(start, start + size)
        .map((value, index) => ({ offset: start + index + 1, value }))
      owner.isPulling = true
      answer(fate, () => {
        owner.isPulling = false
        if (!place.owners.includes(owner)) return
        owner.position = start + messages.length
        owner.buffer.push(...messages)
        history.pullOk(owner.client, { ...place.at, offsetVersion, from, messages, skipped: start - from })
      })
    },
    handle({ pick, size }: Command) {
      const place = pickOf(places, pick)
      const owner = acting(place, pick)
      for (const message of owner?.buffer.splice(0, size) ?? []) {
        const handled = { ...place.at, ...message }
        const last = pick % 7 === 0 ? 'moved' : 'ok'
        const outcomes: HandleOutcome[] = message.offset % 4 === 0 ? ['failed', last] : [last]
        for (const outcome of outcomes) {
          history.handleStart(owner?.client ?? '', handled)
          history.handleEnd(owner?.client ?? '', handled, outcome)
        }
      }
    },
    commit({ pick, fate }: Command) {
      const place = pickOf(places, pick)
      const owner = acting(place, pick)
      if (!owner) return
      const { client, offsetVersion, buffer, position } = owner
      const offset = (buffer[0]?.offset ?? position + 1) - 1
      const op = history.commitInvoke(client, { ...place.at, offset, offsetVersion })
      const apply = () => {
        const isOwner = offsetVersion === place.offsetVersion
        const outcome = !isOwner ? 'fenced' : offset > place.offset ? 'advanced' : 'unchanged'
        if (outcome === 'advanced') place.offset = offset
        return { outcome, offsetVersion: place.offsetVersion } as const
      }
      const early = pick % 3 === 0 ? apply() : undefined
      if (fate === 'forgotten') history.commitInfo(client, op)
      else answer(fate, () => history.commitOk(client, op, early ?? apply()))
    },
    work(command: Command) {
      this.pull(command)
      this.handle(command)
      this.commit(command)
    },
    crash({ pick }: Command) {
      const client = `c${pick % 7}`
      history.crashed(client)
      for (const place of places) place.owners = place.owners.filter(owner => owner.client !== client)
    },
    reset({ pick, size, fate }: Command) {
      if (pick % 4 > 0) return
      const place = pickOf(places, pick / 4)
      const offset = Math.min(place.log.values.length, size * 2)
      const op = history.resetInvoke('admin', { ...place.at, offset })
      place.offset = offset
      const offsetVersion = ++place.offsetVersion
      answer(fate, () => history.resetOk('admin', op, pick % 3 === 0 ? {} : { offsetVersion }))
    },
    trim({ pick, size, fate }: Command) {
      if (fate !== 'late') return
      const log = pickOf(logs, pick)
      log.trimmed = Math.min(log.values.length, log.trimmed + size)
      history.trim('clock', { queueId: log.queueId, upTo: log.trimmed })
    },
    drain() {
      for (const record of pending.splice(0)) record()
      for (const [index, place] of places.entries()) {
        own(place, `c${index}`, 'answered')
        this.work({ act: 'work', pick: 16 + index, size: 1000, fate: 'answered' })
      }
      for (const group of ['g1', 'g2']) history.drained('test', { group })
    },
  }
}

function pickOf<T>(items: readonly T[], pick: number): T {
  const item = items[pick % items.length]
  if (item === undefined) throw new Error('nothing to pick from')
  return item
}
