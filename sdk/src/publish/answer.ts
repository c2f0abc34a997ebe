import type { PublishResponse } from '../../../core/protocol/publish.ts'
import { longestRetryAfterMs, PublishError } from '../errors.ts'

import type { Outcome } from './call.ts'

/** What the service said to a publish. */
export type ReadAnswer = {
  /** By index of the message; empty where the answer says nothing yet. */
  outcomes: (Outcome | undefined)[]
  /** Above 0: the service asks to wait this many milliseconds and to send the same again. */
  waitMs: number
  /** Where the last run of messages went. */
  queueId: number | undefined
}

/**
 * Turns the runs of an answer into an outcome per message. With `suc: false` and no wait the answer is final: a message
 * without a run of its own was refused with the whole request.
 */
export function readPublishAnswer(answer: PublishResponse, count: number, isInDoubt: boolean): ReadAnswer {
  const waitMs = !answer.suc && answer.sleepTime > 0 ? Math.min(answer.sleepTime, longestRetryAfterMs) : 0
  const outcomes = new Array<Outcome | undefined>(count).fill(undefined)
  let queueId: number | undefined
  for (const run of answer.offsets ?? []) {
    // An answer that names messages that were not sent is none.
    if (!(run.first >= 0 && run.first + run.count <= count)) throw new RangeError('it tells of other messages')
    const end = run.first + run.count
    if (run.queueId !== undefined && run.offset !== undefined) {
      queueId = run.queueId
      for (let index = run.first; index < end; index++) {
        outcomes[index] = { queueId: run.queueId, offset: run.offset + index - run.first }
      }
    } else if (waitMs === 0) {
      outcomes.fill(refused(run.error ?? answer.msg, false), run.first, end)
    }
  }
  if (waitMs === 0 && outcomes.includes(undefined)) {
    const error = answer.suc ? silent() : refused(answer.msg, isInDoubt)
    for (let index = 0; index < count; index++) outcomes[index] ??= error
  }
  return { outcomes, waitMs, queueId }
}

function refused(words: string | undefined, isInDoubt: boolean): PublishError {
  return new PublishError('refused', `The service refused the message: ${words || 'no reason given'}`, {
    outcome: isInDoubt ? 'unknown' : 'not_stored',
  })
}

function silent(): PublishError {
  return new PublishError('bad_answer', 'The service accepted the publish and did not say where the message is.', {
    outcome: 'unknown',
  })
}
