import { failureMutations } from './of-failures.ts'
import { featureMutations } from './of-features.ts'
import { recordMutations } from './of-records.ts'

/** A mistake that somebody could make in our own sources: text that is there, and what stands there instead. */
export type Mutation = {
  name: string
  file: string
  search: string
  replace: string
  /** The promise, or property, that is seen to be broken. One of these. */
  expected: string[]
  /** The first seed that is played, where it takes one of few to find it. @default 1 */
  from?: number
}

/** Names the mutation to a process that is to load it. */
export const mutationName = 'SIMULATION_MUTATION'

const basicMutations: Mutation[] = [
  {
    name: 'a commit is taken from any owner',
    file: 'core/group/commit.ts',
    search: 'if (asked.offsetVersion !== offsetVersion) return',
    replace: 'if (asked.offsetVersion > offsetVersion) return',
    expected: ['P4', 'P5/Q06'],
    from: 38,
  },
  {
    name: 'a rebalance writes over what another has moved meanwhile',
    file: 'core/group/handover.ts',
    search: `  if (!isAsRead) return undefined
  const { consumerId, leaving, ownerIsLost, rbVersion } = move
  const offsetVersion = offset.offsetVersion`,
    replace: `  const { consumerId, leaving, ownerIsLost, rbVersion } = move
  const offsetVersion = move.expectedOffsetVersion`,
    expected: ['P4', 'P5/Q06'],
    from: 225,
  },
  {
    name: 'a move to another owner does not raise the offsetVersion',
    file: 'core/group/handover.ts',
    search: '(isFencing(move) ? 1 : 0)',
    replace: '0',
    expected: ['P5/Q06'],
  },
  {
    name: 'a hand-over does not raise the offsetVersion',
    file: 'core/group/commit.ts',
    search: 'asked.release ? offsetVersion + 1 : offsetVersion',
    replace: 'offsetVersion',
    expected: ['P5/Q06'],
  },
  {
    name: 'a queue is taken from its owner at once',
    file: 'core/group/handover.ts',
    search: 'return { consumerId: owner, leaving: { nextConsumerId: wanted, sinceMs } }',
    replace: 'return { consumerId: wanted }',
    expected: ['P6'],
    from: 36,
  },
  {
    name: 'an appender does not know its own batch again',
    file: 'core/log/append.ts',
    search: 'if (result.winner.publishId === publishId) return',
    replace: 'if (result.winner.base < 0) return',
    expected: ['P8'],
  },
  {
    name: 'an appender takes every batch for one message',
    file: 'core/log/append.ts',
    search: 'base = endOf(result.winner)',
    replace: 'base = result.winner.base + 1',
    expected: ['P2', 'Q03', 'Q04'],
  },
  {
    name: 'an appender remembers a boundary that is none',
    file: 'core/log/append.ts',
    search: 'if (!store.appendsInOrder) boundaries.set(queueId, base + count, nowMs)',
    replace: 'if (!store.appendsInOrder) boundaries.set(queueId, base + 1, nowMs)',
    expected: ['P2', 'Q03', 'Q04'],
  },
  {
    name: 'a retried publish is not looked for',
    file: 'core/client/route-part.ts',
    search: '(request.attempt ?? 1) > 1',
    replace: '(request.attempt ?? 1) > 1_000',
    expected: ['P8'],
  },
  {
    name: 'an empty log begins anew',
    file: 'core/log/resume.ts',
    search: 'new Map(snapshot.queues.map(queue => [queue.queueId, queue.checkpoint]))\n',
    replace: 'new Map(snapshot.queues.map(queue => [queue.queueId, 1]))\n  if (heads) return heads\n',
    expected: ['P2', 'Q03'],
  },
  {
    name: 'a reader does not check that batches follow each other',
    file: 'core/log/read.ts',
    search: 'if (batch.base !== next || !isLive(batch)) break',
    replace: 'if (!isLive(batch)) break',
    expected: ['P1/Q01', 'P2', 'Q04'],
  },
  {
    name: 'a reader keeps batches of all queues under their offsets',
    file: 'core/log/read.ts',
    search: 'const keyOf = (queueId: number, offset: number) =>',
    replace: 'const keyOf = (queueId: number, offset: number) => (queueId = 0) ||',
    expected: ['Q02', 'Q03'],
  },
  {
    name: 'the SDK commits the highest offset that is finished',
    file: 'sdk/src/worker/offset-tracker.ts',
    search: 'return committable > before',
    replace: 'return (committable = Math.max(committable, span.lastOffset)) > before',
    expected: ['Q07'],
  },
  {
    name: 'the SDK gives a queue up as if all that it had pulled were done',
    file: 'sdk/src/worker/queue-worker.ts',
    search: `    end()
    return { ...commitEntry(),`,
    replace: `    end()
    return { ...commitEntry(), offset: pull.position,`,
    expected: ['Q07'],
  },
  {
    name: 'the SDK takes a call that fails for done',
    file: 'sdk/src/worker/attempts.ts',
    search: `    }
    conclude(call, context, clock.monotonic(), failure)`,
    replace: `    }
    conclude(call, context, clock.monotonic(), undefined)`,
    expected: ['Q07'],
  },
  {
    name: 'the SDK gives each attempt of a publish a name of its own',
    file: 'sdk/src/publish/send.ts',
    search: 'request.attempt = ++attempt',
    replace: 'request.attempt = ++attempt; request.publishId = deps.newPublishId()',
    expected: ['P8'],
  },
  {
    name: 'the SDK does not tell a publish in doubt from one that failed',
    file: 'sdk/src/publish/send.ts',
    search: 'isInDoubt ||= attempt > 0 && lastError.inDoubt',
    replace: '',
    expected: ['Q02'],
  },
  {
    name: 'the SDK does not wait for handlers when it gives a queue up',
    file: 'sdk/src/worker/queue-worker.ts',
    search: 'await Promise.race([finishWork(), timeUp])',
    replace: 'await Promise.race([finishWork(), timeUp, undefined])',
    expected: ['P6'],
    from: 125,
  },
  {
    name: 'nobody finishes a rebalance that a former one has overtaken',
    file: 'core/group/rebalance.ts',
    search: 'expectedRbVersion: group.rbVersion,',
    replace: 'expectedRbVersion: group.rbVersion - 1,',
    expected: ['Q11', 'missed'],
  },
]

export const mutations: Mutation[] = [...basicMutations, ...featureMutations, ...failureMutations, ...recordMutations]
