import { type Facts, queueOf } from '../facts.ts'
import { boundsOf, failureOf } from '../failure-facts.ts'
import type { EventOf, FailedMessage } from '../history.ts'
import { place, type Violation, violation } from '../violation.ts'

/**
 * P7/Q10, counting. In one assignment a message is handled once, and as often as the rules say where they repeat it in
 * place; then it is in the fail topic, with one failure more, or in place with as many as make it a dead letter. Only what
 * has failed goes there, or is suspected to have ended its process. A dead letter is never handled. So what always fails is handled as often again as there are
 * retries, times how often its queues were assigned anew before that was committed.
 */
export function* findMiscounted(facts: Facts): Generator<Violation> {
  const assignments = new Map<string, Assignment>()
  for (const event of facts.events) {
    if (event.type === 'assignment-gained') {
      const { offsetVersion } = event
      assignments.set(`${event.client}/${queueOf(event)}`, { offsetVersion, starts: new Map(), failed: new Set() })
    }
    // As one that has failed: nobody else can say so.
    if (event.type === 'suspected') assignments.get(`${event.client}/${queueOf(event)}`)?.failed.add(event.offset)
    if (event.type === 'handle-start') yield* judgeStart(facts, event, assignments.get(keyOf(event)))
    if (event.type === 'handle-end') {
      const failed = assignments.get(keyOf(event))?.failed
      if (event.outcome === 'failed') failed?.add(event.offset)
      else failed?.delete(event.offset)
    }
    if (event.type !== 'publish-invoke') continue
    for (const { value, failureOf: failed } of event.messages) {
      if (!failed) continue
      const assignment = assignments.get(`${event.client}/${queueOf(failed)}`)
      yield* judgeFailure(facts, event, value, failed, assignment)
    }
  }
}

type Assignment = {
  offsetVersion: number
  /** How often each offset was handed out. */
  starts: Map<number, number>
  /** Those whose last call has failed. */
  failed: Set<number>
}

const keyOf = (event: EventOf<'handle-start' | 'handle-end'>) => `${event.client}/${queueOf(event)}`

function* judgeStart(facts: Facts, start: EventOf<'handle-start'>, assignment: Assignment | undefined) {
  const { client, group, queueId, offset, value } = start
  const bounds = boundsOf(facts, group, value)
  if (!assignment || !bounds) return
  const count = (assignment.starts.get(offset) ?? 0) + 1
  assignment.starts.set(offset, count)
  const copy = failureOf(facts, value)
  const handled = `${client} handled "${value}" (${place(queueId, offset)})`
  if (copy && copy.retryCount > bounds.mostRetries) {
    const seen = `${handled}, which had failed ${copy.retryCount} times: ${bounds.mostRetries} retries at most`
    yield violation('P7/Q10', seen, start)
  }
  if (!copy && bounds.mayLackFailTopic) return
  const most = !copy && bounds.mayRetryInPlace ? bounds.mostRetries + 1 : 1
  if (count === most + 1) yield violation('P7/Q10', `${handled} for the ${count}th time in one assignment`, start)
}

function* judgeFailure(
  facts: Facts,
  publish: EventOf<'publish-invoke'>,
  value: string,
  failed: FailedMessage,
  assignment: Assignment | undefined,
): Generator<Violation> {
  const { group, queueId, offset, offsetVersion, retryCount } = failed
  const original = facts.queues.get(queueId)?.get(offset)?.value
  const bounds = original === undefined ? undefined : boundsOf(facts, group, original)
  if (original === undefined || !bounds) return
  const did = `${publish.client} sent "${value}" to the fail topic for "${original}" (${place(queueId, offset)})`
  const copy = failureOf(facts, original)
  const isOneMore = retryCount === (copy?.retryCount ?? 0) + 1
  const isDeadAtOnce = retryCount > bounds.leastRetries && retryCount <= bounds.mostRetries + 1
  if (!isOneMore && !(copy === undefined && bounds.mayRetryInPlace && isDeadAtOnce)) {
    yield violation('P7/Q10', `${did} as one that has failed ${retryCount} times`, publish)
  }
  if (assignment?.offsetVersion === offsetVersion && !assignment.failed.has(offset)) {
    yield violation('P7/Q10', `${did}, which it had not failed to handle`, publish)
  }
}
