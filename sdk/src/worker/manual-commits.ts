import type { FailureCause } from '../../../core/protocol/failures.ts'
import { PmqClientError } from '../errors.ts'
import type { ManualCommitOptions, Message } from '../message.ts'
import type { HandOuts } from './hand-outs.ts'

/** What committing by hand is made of. */
export type ManualCommitsDeps = {
  handOuts: HandOuts
  /** What the service has recorded as done. */
  recorded(): number
  /** Whether there is a topic for what failed. */
  hasFailTopic(): boolean
  /** Whether the service has to be told of what is done first. */
  confirms(): boolean
  /**
   * Brings messages to the fail topic, and tells what is done. False: the queue is being given up, and will be closed.
   * Never rejects.
   */
  bringAway(failed: readonly Message[], done: readonly Message[], cause: FailureCause): Promise<boolean>
  /** These messages are done. */
  finish(messages: readonly Message[]): void
}

/** Commits by hand. */
export type ManualCommits = {
  commit(offset: number, options?: ManualCommitOptions): Promise<void>
  /** Brings messages that were handed out to the fail topic, though nobody has said that they failed. */
  giveAway(failed: readonly Message[], cause: FailureCause): void
  /** Whether a message is handed out, and no commit has said yet what became of it. */
  isOpen(message: Message): boolean
  /** More may be recorded than before. */
  recordedMore(): void
  /** Resolves when everything that was handed out is committed, or the queue is given up. */
  settled(): Promise<void>
  /** Nothing more will be recorded: what waits for it is rejected, and whatever comes. */
  close(error: PmqClientError): void
}

/** Makes a list of commits by hand with none in it. */
export function createManualCommits(deps: ManualCommitsDeps): ManualCommits {
  const { handOuts } = deps
  /** Offsets of what is on its way to the fail topic. It stays handed out, so that nothing is recorded past it. */
  const leaving = new Set<number>()
  /** Offsets of what is done, while the service is told. */
  const confirming = new Set<number>()
  const waiting = new Set<{ offset: number; resolve: () => void; reject: (error: PmqClientError) => void }>()
  const onSettled: (() => void)[] = []
  let closedBy: PmqClientError | undefined

  function checkOffset(offset: number) {
    const isOne = Number.isSafeInteger(offset) && offset >= 0
    if (isOne && offset <= Math.max(handOuts.highestOffset, deps.recorded())) return
    const reach = `offsets up to ${Math.max(handOuts.highestOffset, deps.recorded())} were`
    throw invalidCommit(`${isOne ? `Offset ${offset} was not handed out` : 'That is no offset'}; ${reach}.`)
  }

  /** Those of `failed` that are not on their way to the fail topic already. */
  function findFailed(offset: number, failed: readonly number[]): Message[] {
    if (!Array.isArray(failed)) throw invalidCommit('failed must be an array of offsets.')
    const messages = [...new Set(failed)].map(failedOffset => {
      const message = failedOffset <= offset && !confirming.has(failedOffset) ? handOuts.get(failedOffset) : undefined
      if (!message)
        throw invalidCommit('failed has something that is not handed out, done, or above what is committed.')
      return message
    })
    const found = messages.filter(isOpen)
    if (found.length > 0 && !deps.hasFailTopic())
      throw invalidCommit('The group has no fail topic for this topic; what failed cannot be brought there.')
    return found
  }

  function isOpen({ offset }: Message): boolean {
    return !leaving.has(offset) && !confirming.has(offset) && handOuts.get(offset) !== undefined
  }

  function finish(messages: readonly Message[]) {
    deps.finish(messages)
    settle()
  }

  async function bringAway(failed: readonly Message[], done: readonly Message[], cause: FailureCause) {
    // Where the queue is given up they stay as they are, and whoever waits for them is rejected when it is closed.
    if (!(await deps.bringAway(failed, done, cause))) return
    for (const { offset } of failed) leaving.delete(offset)
    for (const { offset } of done) confirming.delete(offset)
    finish([...failed, ...done])
  }

  function settle() {
    if (handOuts.size > 0 && !closedBy) return
    for (const resolve of onSettled.splice(0)) resolve()
  }

  return {
    async commit(offset, { failed = [] } = {}) {
      if (closedBy) throw closedBy
      checkOffset(offset)
      const failedMessages = findFailed(offset, failed)
      // What becomes of a message is settled here and at once, by the first commit that speaks of it: finishing some of
      // them may call a handler, which may commit in turn.
      for (const message of failedMessages) leaving.add(message.offset)
      const done = handOuts.upTo(offset).filter(isOpen)
      const told = deps.confirms() ? done : []
      for (const message of told) confirming.add(message.offset)
      if (failedMessages.length + told.length > 0) void bringAway(failedMessages, told, { kind: 'returned' })
      if (told.length === 0) finish(done)
      if (deps.recorded() >= offset) return
      await new Promise<void>((resolve, reject) => {
        if (closedBy) reject(closedBy)
        else waiting.add({ offset, resolve, reject })
      })
    },
    giveAway(failed, cause) {
      for (const { offset } of failed) leaving.add(offset)
      void bringAway(failed, [], cause)
    },
    isOpen,
    recordedMore() {
      for (const waiter of waiting) {
        if (deps.recorded() < waiter.offset) continue
        waiting.delete(waiter)
        waiter.resolve()
      }
    },
    settled() {
      return new Promise(resolve => {
        onSettled.push(resolve)
        settle()
      })
    },
    close(error) {
      closedBy ??= error
      for (const { reject } of waiting) reject(closedBy)
      waiting.clear()
      settle()
    },
  }
}

function invalidCommit(text: string): PmqClientError {
  return new PmqClientError('invalid_commit', text)
}
