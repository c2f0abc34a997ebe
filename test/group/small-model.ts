import { assignQueues } from '../../core/group/assign.ts'
import { afterCommit, decideCommit } from '../../core/group/commit.ts'
import { afterMove, decideHandover, headingFor } from '../../core/group/handover.ts'
import type { QueueOffset } from '../../core/model.ts'
import type { QueueMove } from '../../core/store.ts'
import { offsetOf } from '../store/contract.ts'

/**
 * Two consumers, two queues, three messages: every order of events that can be, over the very decisions that the stores
 * take. A consumer learns of its assignment, handles, commits and releases whenever it likes, or never (it is slow, or
 * paused, or a zombie); a rebalance moves one queue at a time, and one of its moves may come late.
 */
export const messages = [2, 1]
const consumerIds = [1, 2]
const timeoutMs = 1

type Work = { offsetVersion: number; position: number; isLeaving: boolean }
type ConsumerState = { isRunning: boolean; isMember: boolean; work: (Work | undefined)[] }
export type State = {
  queues: QueueOffset[]
  consumers: ConsumerState[]
  /** How often each message was handled. */
  handled: number[][]
  /** A move that was planned and not yet made. */
  pending: QueueMove | undefined
  /** What may still happen once. */
  mayJoin: boolean
  mayDie: boolean
  mayLeave: boolean
  mayBeLate: boolean
  /** Nobody died or was late: nothing may be handled twice. */
  isClean: boolean
}

export type Step = { label: string; next: State; problem?: string }

export const start: State = {
  queues: messages.map((_, i) => offsetOf('g', i + 1, { consumerId: 1, offsetVersion: 1 })),
  consumers: [
    {
      isRunning: true,
      isMember: true,
      work: messages.map(() => ({ offsetVersion: 1, position: 0, isLeaving: false })),
    },
    { isRunning: true, isMember: false, work: messages.map(() => undefined) },
  ],
  handled: messages.map(count => Array.from({ length: count }, () => 0)),
  pending: undefined,
  mayJoin: true,
  mayDie: true,
  mayLeave: true,
  mayBeLate: true,
  isClean: true,
}

const replaceAt = <T>(list: readonly T[], index: number, value: T): T[] =>
  list.map((item, i) => (i === index ? value : item))
const withConsumer = (state: State, c: number, change: Partial<ConsumerState>): State => {
  const consumer = state.consumers[c]
  return consumer ? { ...state, consumers: replaceAt(state.consumers, c, { ...consumer, ...change }) } : state
}
const withWork = (state: State, c: number, q: number, work: Work | undefined): State =>
  withConsumer(state, c, { work: replaceAt(state.consumers[c]?.work ?? [], q, work) })

/** Every step that can be taken from a state. */
export function stepsFrom(state: State): Step[] {
  return [
    ...membershipSteps(state),
    ...rebalanceSteps(state),
    ...consumerIds.flatMap((_, c) => consumerSteps(state, c)),
  ]
}

function membershipSteps(state: State): Step[] {
  const steps: Step[] = []
  const [first, second] = state.consumers
  if (state.mayJoin)
    steps.push({ label: '2 joins', next: withConsumer({ ...state, mayJoin: false }, 1, { isMember: true }) })
  if (state.mayDie && first?.isRunning)
    steps.push({
      label: '1 dies',
      next: withConsumer({ ...state, mayDie: false, isClean: false }, 0, { isRunning: false }),
    })
  // Given up while it may still be running: a zombie.
  if (first?.isMember && second?.isMember && !state.mayLeave && state.mayDie)
    steps.push({
      label: '1 expires',
      next: withConsumer({ ...state, mayDie: false, isClean: false }, 0, { isMember: false }),
    })
  if (first?.isMember && !first.isRunning)
    steps.push({ label: '1 expires', next: withConsumer(state, 0, { isMember: false }) })
  const hasWork = second?.work.some(work => work !== undefined)
  if (state.mayLeave && second?.isMember && !hasWork)
    steps.push({
      label: '2 leaves',
      next: withConsumer({ ...state, mayLeave: false }, 1, { isMember: false, isRunning: false }),
    })
  return steps
}

function rebalanceSteps(state: State): Step[] {
  const steps: Step[] = []
  const moves = plannedMoves(state, false)
  for (const move of moves) {
    steps.push(makeMove(state, move, 'moves'))
    if (!state.pending) steps.push({ label: `plans ${nameOf(move)}`, next: { ...state, pending: move } })
  }
  if (state.pending) steps.push(makeMove({ ...state, pending: undefined }, state.pending, 'makes the planned'))
  if (state.mayBeLate) {
    for (const move of plannedMoves(state, true)) {
      steps.push(makeMove({ ...state, mayBeLate: false, isClean: false }, move, 'out of patience'))
    }
  }
  return steps
}

const nameOf = (move: QueueMove) =>
  `queue ${move.queueOffsetId} to ${move.leaving ? `${move.leaving.nextConsumerId} when released` : move.consumerId}`

function plannedMoves({ queues, consumers }: State, isLate: boolean): QueueMove[] {
  const members = consumerIds
    .filter((_, c) => consumers[c]?.isMember)
    .map(consumerId => ({ consumerId, topicNames: ['orders'] }))
  const current = new Map(queues.map(queue => [queue.queueId, headingFor(queue)]))
  const wanted = assignQueues(members, queues, current)
  return queues.flatMap(queue => {
    if (isLate && queue.nextConsumerId === undefined) return []
    const ownership = decideHandover(queue, {
      wanted: wanted.get(queue.queueId) ?? 0,
      // The first one leaves by being given up only, the second one in order.
      owner: members.some(member => member.consumerId === queue.consumerId)
        ? 'alive'
        : queue.consumerId === 1
          ? 'lost'
          : 'gone',
      nowMs: isLate ? timeoutMs : 0,
      timeoutMs,
    })
    if (!ownership) return []
    const move: QueueMove = {
      groupName: 'g',
      queueOffsetId: queue.queueOffsetId,
      expectedOffsetVersion: queue.offsetVersion,
      expectedConsumerId: queue.consumerId,
      expectedNextConsumerId: queue.nextConsumerId,
      ...ownership,
      rbVersion: 1,
    }
    return [move]
  })
}

function makeMove(state: State, move: QueueMove, verb: string): Step {
  const q = state.queues.findIndex(queue => queue.queueOffsetId === move.queueOffsetId)
  const queue = state.queues[q]
  const moved = queue && afterMove(queue, { rbVersion: 0 }, move)
  const next = moved ? { ...state, queues: replaceAt(state.queues, q, moved) } : state
  return { label: `rebalance ${verb} ${nameOf(move)}`, next }
}

function consumerSteps(state: State, c: number): Step[] {
  const consumer = state.consumers[c]
  if (!consumer?.isRunning) return []
  const steps: Step[] = [{ label: `${c + 1} hears of its assignment`, next: hear(state, c) }]
  for (const [q, work] of consumer.work.entries()) {
    if (!work) continue
    if (!work.isLeaving && work.position < (messages[q] ?? 0)) steps.push(handle(state, c, q, work))
    steps.push(commit(state, c, q, work, false))
    // What a consumer has in hand it finishes first; and one that is asked to stop may release whenever it is through.
    if (work.isLeaving) steps.push(commit(state, c, q, work, true))
  }
  return steps
}

function hear(state: State, c: number): State {
  let next = state
  for (const [q, queue] of state.queues.entries()) {
    const work = state.consumers[c]?.work[q]
    const isMine = queue.consumerId === consumerIds[c] && queue.nextConsumerId === undefined
    if (!isMine) {
      if (work && !work.isLeaving) next = withWork(next, c, q, { ...work, isLeaving: true })
    } else if (!work || work.offsetVersion < queue.offsetVersion) {
      next = withWork(next, c, q, { offsetVersion: queue.offsetVersion, position: queue.offset, isLeaving: false })
    }
  }
  return next
}

function handle(state: State, c: number, q: number, work: Work): Step {
  const counts = state.handled[q] ?? []
  const times = (counts[work.position] ?? 0) + 1
  const handled = replaceAt(state.handled, q, replaceAt(counts, work.position, times))
  const next = withWork({ ...state, handled }, c, q, { ...work, position: work.position + 1 })
  const label = `${c + 1} handles message ${work.position + 1} of queue ${q + 1}`
  return state.isClean && times > 1
    ? { label, next, problem: 'a clean change handed a message out twice (P6)' }
    : { label, next }
}

function commit(state: State, c: number, q: number, work: Work, release: boolean): Step {
  const queue = state.queues[q]
  const label = `${c + 1} ${release ? 'releases' : 'commits'} queue ${q + 1} at ${work.position}`
  const asked = {
    groupName: 'g',
    queueOffsetId: q + 1,
    offsetVersion: work.offsetVersion,
    offset: work.position,
    release,
    nowMs: 0,
  }
  const decided = decideCommit(queue, asked)
  const done = release ? withWork(state, c, q, undefined) : state
  if (!queue || decided.outcome === 'unknown_queue') return { label, next: done, problem: 'a queue is gone' }
  if (decided.outcome === 'fenced') return { label: `${label}, and is fenced`, next: withWork(state, c, q, undefined) }
  const committed = afterCommit(queue, asked, decided)
  const next = { ...done, queues: replaceAt(state.queues, q, committed) }
  if (queue.consumerId !== consumerIds[c])
    return { label, next, problem: 'a commit of somebody who is not the owner (P4)' }
  if (committed.offset < queue.offset) return { label, next, problem: 'a commit went back (P4)' }
  const unhandled = (state.handled[q] ?? []).slice(0, committed.offset).some(times => times === 0)
  return unhandled ? { label, next, problem: 'a commit passed a message that nobody handled (P1)' } : { label, next }
}

/** What must hold in every state. */
export function problemOf(state: State): string | undefined {
  for (const [q, queue] of state.queues.entries()) {
    const owners = state.consumers.filter(({ work }) => work[q]?.offsetVersion === queue.offsetVersion)
    if (owners.length > 1) return `queue ${q + 1} has two owners of one offsetVersion (P5)`
    if (queue.deaths && state.mayDie) return `queue ${q + 1} has lost an owner, and nobody was lost`
  }
  return undefined
}
