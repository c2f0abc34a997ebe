import type { Mutation } from './mutations.ts'

/** Mistakes in what is remembered of messages that failed. */
export const recordMutations: Mutation[] = [
  {
    name: 'the service says that failures are taken before they are recorded',
    file: 'core/client/failures.ts',
    search: 'return suc && !isRecorded ?',
    replace: 'return suc && isRecorded === undefined ?',
    expected: ['records'],
  },
  {
    name: 'the service says that a success is recorded whatever became of it',
    file: 'core/client/failures.ts',
    search: '? stored : notRecorded',
    replace: '? stored : { ...notRecorded, suc: true }',
    expected: ['records'],
    from: 60,
  },
  {
    name: 'a late repeat turns a record back',
    file: 'core/failed/records.ts',
    search: "if (lead < 0) return 'superseded'",
    replace: "if (lead < 0) return 'replace'",
    expected: ['records'],
  },
  {
    name: 'a success that comes before its failure is forgotten with it',
    file: 'core/failed/records.ts',
    search: "if (current === undefined) return 'replace'",
    replace: "if (current === undefined) return next.state === 'succeeded' ? 'superseded' : 'replace'",
    expected: ['records'],
    from: 380,
  },
  {
    name: 'each failure begins a record of its own',
    file: 'core/failed/trail.ts',
    search: 'if (!former) return {',
    replace: 'if (!former || former) return {',
    expected: ['records'],
  },
  {
    name: 'a dead letter counts as retried',
    file: 'core/failed/record.ts',
    search: '(stored.message.retryCount ?? 0) > retryCount',
    replace: '(stored.message.retryCount ?? 0) > retryCount + 1',
    expected: ['records'],
  },
  {
    name: 'the last retry counts as a dead letter',
    file: 'core/failed/record.ts',
    search: '(stored.message.retryCount ?? 0) > retryCount',
    replace: '(stored.message.retryCount ?? 0) >= Math.max(1, retryCount)',
    expected: ['records'],
  },
  {
    name: 'a record forgets that its message has failed before',
    file: 'core/failed/trail.ts',
    search: 'Math.max(1, retryCount)',
    replace: 'Math.max(1, retryCount - 1)',
    expected: ['records'],
    from: 155,
  },
  {
    name: 'the SDK does not say what it has handled after all',
    file: 'sdk/src/worker/failures.ts',
    search: 'deps.queue().topicType === 2,',
    replace: 'deps.queue().topicType === 3,',
    expected: ['records'],
  },
  {
    name: 'the SDK commits past a retried message before it has said that it was handled',
    file: 'sdk/src/worker/dispatch.ts',
    search: 'if (deps.confirms()) return void confirm(call)',
    replace: 'if (deps.confirms()) void deps.bringAway([], 0, call.messages, undefined)',
    expected: ['records'],
    from: 252,
  },
]
