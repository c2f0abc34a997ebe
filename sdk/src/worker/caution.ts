import type { CommitEntry } from '../../../core/protocol/commit.ts'
import type { AssignedQueue } from '../../../core/protocol/membership.ts'
import { PmqClientError } from '../errors.ts'
import type { Message } from '../message.ts'
import type { DispatchSettings } from './dispatch.ts'
import type { TrialTurns, Turn } from './trial-turns.ts'

/** What working carefully is made of. */
export type CautionDeps = {
  turns: TrialTurns
  /** How far behind what is committed the lost owner may have worked. */
  maxMessages: number
  /** There is something to tell the service; with `isUrgent` a call waits until it has taken it. */
  onNews(isUrgent: boolean): void
  /** It goes on in another way. */
  onStage(): void
  /** What was handed out last is all that is in work. */
  isAlone(): boolean
  /** Everything up to this offset is done, and everything up to that one is recorded as done. */
  done(): number
  recorded(): number
}

/** Works through what a lost owner may have had in hand. */
export type Caution = {
  /** False: it is over, and everything goes as usual. */
  readonly isOn: boolean
  /** A call waits for leave to begin. */
  readonly isAsking: boolean
  /** How calls are made meanwhile; so many of those that there are wait to be repeated. */
  limit(settings: DispatchSettings, waiting: number): DispatchSettings
  /** Whether a call may begin, as soon as it may. False: the queue is being given up. */
  mayBegin(messages: readonly Message[]): Promise<boolean>
  /** A call that was given leave has ended, or has not begun after all. */
  ended(messages: readonly Message[], hasFailed: boolean): void
  /** Whether this is the message that the lost owner had in hand alone, and that has not been judged yet. */
  isSuspect(messages: readonly Message[]): boolean
  /** Whether the suspect may be judged, as soon as it may. False: the queue is being given up. */
  mayJudge(): Promise<boolean>
  /** Judges it: it has failed, though nobody can have said so. */
  judge(): PmqClientError
  /** How often messages have failed where they are before this owner: so many were lost with them, but for the last. */
  earlierFailures(messages: readonly Message[]): number
  /** Nothing is in work, and the service has nothing more; what is `delayed` waits until it is due. */
  atRest(delayed: number): void
  /** What a commit has to say besides. */
  entry(): Pick<CommitEntry, 'trialOffset' | 'trialFailures'>
  /** There is something to commit, though nothing was done. */
  readonly hasNews: boolean
  /** What is done is to be recorded at once: others wait for it. */
  readonly isUrgent: boolean
  /** The service has taken a commit. */
  settled(sent: CommitEntry): void
  /** Nothing begins any more. */
  close(): void
}

/**
 * What a lost owner had in hand is what its settings let it, `threadSize` × `consumerBatchSize`: so many messages are handed
 * out one by one, and those beyond, of which some may have been done and not recorded, in so many at a time. With fewer than
 * ten, steps would be too short to be worth a commit; with more than a hundred, one by one would take too long.
 */
const leastStep = 10
const greatestStep = 100
/** What ends a process does so soon, as a rule; and a slow handler must not hold the other queues up for longer. */
const turnMs = 1_000
/** In fail topics little happens, and what is there has failed already. */
const turnOfFailQueueMs = 60_000

/**
 * The stages of a queue whose owners were lost.
 *
 * - `single`: one message at a time. Before each is handed out, the service has recorded that it is on trial, and everything
 *   before as done. Left when as many as the lost owner had in hand have been handed out.
 * - `steps`: as usual, but after each step everything is recorded before the next begins. So if the process ends, the next
 *   owner meets the message one by one. Left when it has come as far as the lost owner can have.
 * - `over`: as usual.
 *
 * All lead to `over` when the queue has been worked through: what comes then nobody had in hand. The suspect is met in
 * `single`, which lasts until then.
 */
export function createCaution(deps: CautionDeps, assigned: AssignedQueue): Caution {
  const { suspectOffset, suspectFailures = 1, topicType, threadSize, consumerBatchSize } = assigned
  const step = Math.min(greatestStep, Math.max(leastStep, threadSize * consumerBatchSize))
  const running = new Map<readonly Message[], Turn | undefined>()
  const waiting: (() => void)[] = []
  let stage: 'single' | 'steps' | 'over' = 'single'
  let isClosed = false
  let isSuspected = suspectOffset !== undefined
  let failures = suspectFailures
  /** The turn in which the suspect is judged: no other queue is to end the process before that is recorded. */
  let judging: Turn | undefined
  /** A call that has been promised to be the next one. */
  let isPromised = false
  let begun = 0
  let leftOfStep = 0
  /** What is on trial, and what the service knows to be; 0: nothing. */
  let onTrial = 0
  let known = 0
  let isEnding = false

  function wake() {
    for (const go of waiting.splice(0)) go()
  }

  const change = () => new Promise<void>(resolve => waiting.push(resolve))

  function enter(next: typeof stage) {
    stage = next
    deps.onStage()
    wake()
  }

  /** Resolves when the service knows of the trial, and of all that was done. False: nothing begins any more. */
  async function told(): Promise<boolean> {
    const done = deps.done()
    for (;;) {
      if (isClosed) return false
      if (known === onTrial && deps.recorded() >= done) return true
      deps.onNews(true)
      await change()
    }
  }

  async function takeTurn(): Promise<Turn> {
    const turn = deps.turns.take(topicType === 2 ? turnOfFailQueueMs : turnMs)
    let isTurn = false
    void turn.begun.then(() => {
      isTurn = true
      wake()
    })
    while (!isTurn && !isClosed) await change()
    return turn
  }

  function endJudging() {
    judging?.pass()
    judging = undefined
  }

  async function beginAlone(messages: readonly Message[]): Promise<boolean> {
    endJudging()
    const turn = await takeTurn()
    onTrial = deps.isAlone() ? (messages[0]?.offset ?? 0) : 0
    if (!(await told())) {
      onTrial = 0
      turn.pass()
      return false
    }
    running.set(messages, turn)
    return true
  }

  async function beginInStep(messages: readonly Message[]): Promise<boolean> {
    if (leftOfStep < messages.length) {
      while (running.size > 0 && !isClosed) await change()
      if (!(await told())) return false
      leftOfStep = step
    }
    leftOfStep -= messages.length
    running.set(messages, undefined)
    return true
  }

  const isOfSuspect = (messages: readonly Message[]) => messages.some(({ offset }) => offset === suspectOffset)

  function noteBegun(count: number) {
    begun += count
    if (stage === 'single' && begun >= step && !isSuspected) enter('steps')
    else if (stage === 'steps' && begun >= deps.maxMessages) enter('over')
  }

  return {
    get isOn() {
      return stage !== 'over'
    },
    get isAsking() {
      return isPromised
    },
    limit(settings, waitingCalls) {
      if (stage === 'over') return settings
      const { threadSize: most, consumerBatchSize } = settings
      if (stage === 'single') return { ...settings, threadSize: Math.min(most, 1 + waitingCalls), consumerBatchSize: 1 }
      return { ...settings, consumerBatchSize: Math.min(step, consumerBatchSize) }
    },
    async mayBegin(messages) {
      while (isPromised || (stage === 'single' && running.size > 0)) {
        if (isClosed) return false
        await change()
      }
      if (stage === 'over') return true
      isPromised = true
      isEnding = false
      const mayBegin = await (stage === 'single' ? beginAlone(messages) : beginInStep(messages))
      isPromised = false
      if (mayBegin) noteBegun(messages.length)
      wake()
      return mayBegin
    },
    ended(messages, hasFailed) {
      if (!running.has(messages)) return
      if (hasFailed && isOfSuspect(messages)) failures++
      const turn = running.get(messages)
      running.delete(messages)
      onTrial = 0
      // Before the next turn: what that one tells the service first goes along with the end of this trial.
      deps.onNews(false)
      turn?.pass()
      wake()
    },
    isSuspect: messages => isSuspected && isOfSuspect(messages),
    async mayJudge() {
      judging ??= await takeTurn()
      if (isClosed) endJudging()
      return !isClosed
    },
    judge() {
      isSuspected = false
      noteBegun(0)
      const times = suspectFailures === 1 ? '' : ` ${suspectFailures} times`
      return new PmqClientError('consumer_lost', `Its consumer was lost${times} with this message alone in hand.`)
    },
    earlierFailures: messages => (isOfSuspect(messages) ? suspectFailures - 1 : 0),
    atRest(delayed) {
      if (stage === 'over' || running.size > 0 || isPromised || (isSuspected && delayed > 0)) return
      isSuspected = false
      endJudging()
      isEnding = true
      if (known === 0) enter('over')
      else deps.onNews(false)
    },
    entry() {
      if (stage === 'over') return {}
      return { trialOffset: onTrial, ...(onTrial > 0 && onTrial === suspectOffset && { trialFailures: failures }) }
    },
    get hasNews() {
      return stage !== 'over' && known !== onTrial
    },
    get isUrgent() {
      return judging !== undefined
    },
    settled({ trialOffset }) {
      if (deps.recorded() >= (suspectOffset ?? 0)) endJudging()
      if (trialOffset == null) return
      known = trialOffset
      if (isEnding && known === 0) enter('over')
      wake()
    },
    close() {
      isClosed = true
      endJudging()
      for (const turn of running.values()) turn?.pass()
      wake()
    },
  }
}
