import type { Mutation } from './mutations.ts'

/** Mistakes in what only some runs make use of: claims, places, changes of queues, outages, broadcast groups. */
export const featureMutations: Mutation[] = [
  {
    name: 'a claim does not raise the offsetVersion',
    file: 'core/group/claim.ts',
    search: 'offsetVersion: current.offsetVersion + 1, claim:',
    replace: 'offsetVersion: current.offsetVersion, claim:',
    expected: ['P5/Q06', 'P4'],
  },
  {
    name: 'a claim is taken though the lease of another one lasts',
    file: 'core/group/claim.ts',
    search: 'claim === undefined || claim.untilMs <= nowMs ||',
    replace: 'claim === undefined || claim.untilMs > 0 ||',
    expected: ['claim'],
  },
  {
    name: 'a renewal does not prolong the lease',
    file: 'core/group/claim.ts',
    search: 'claim: { ...claim, untilMs: asked.untilMs }',
    replace: 'claim',
    expected: ['claim', 'P6'],
    from: 1160,
  },
  {
    name: 'a function claims for less time than it may last',
    file: 'sdk/src/lambda/invocation.ts',
    search: 'Math.max(leftMs, limits.minLeaseMs)',
    replace: 'limits.minLeaseMs',
    expected: ['P6'],
  },
  {
    name: 'a consumer is given up when it is met silent first',
    file: 'core/group/silence.ts',
    search: ' && nowMs - firstMetAtMs >= graceMs',
    replace: '',
    expected: ['outage'],
    from: 200,
  },
  {
    name: 'a queue is removed that is not drained',
    file: 'core/admin/queues.ts',
    search: 'if (lag <= 0) continue',
    replace: 'if (lag <= 1e9) continue',
    expected: ['P1/Q01'],
  },
  {
    name: 'a group gets of a new queue only what comes later',
    file: 'core/group/offsets.ts',
    search: 'queueOffsetId: firstId + i, offset: 0, consumerId: owner, rbVersion }',
    replace:
      'queueOffsetId: firstId + i, offset: (await core.findEnd(queue.topicName, queue.queueId)) - 1, consumerId: owner, rbVersion }',
    expected: ['P1/Q01', 'Q07'],
    from: 550,
  },
  {
    name: 'a subscription begins one message too late',
    file: 'core/group/subscriptions.ts',
    search: '(await core.findEnd(topicName, queueId)) - 1)',
    replace: 'await core.findEnd(topicName, queueId))',
    expected: ['P1/Q01'],
  },
  {
    name: 'a broadcast consumer is a member before it has queues',
    file: 'core/client/register-group.ts',
    search: 'await ensureCopy(core, group, copyName, { groupName, consumerId })',
    replace: '',
    expected: ['P1/Q01'],
  },
  {
    name: 'who was replaced is not let go',
    file: 'core/client/register-group.ts',
    search: 'for (const former of replaced.values()) await letGo(core, former.consumerId, former.groupName, ',
    replace: 'for (const former of replaced.values()) void (core, former.consumerId, former.groupName, ',
    expected: ['place'],
  },
  {
    name: 'who was replaced takes its place back',
    file: 'core/group/join.ts',
    search: 'const isTaken = isReturning &&',
    replace: 'const isTaken = isReturning && Number.isNaN(consumerId) &&',
    expected: ['place'],
  },
  {
    name: 'a reset does not fence what the owner has in hand',
    file: 'core/group/commit.ts',
    search: 'offset, offsetVersion: current.offsetVersion + 1 }\n}',
    replace: 'offset, offsetVersion: current.offsetVersion }\n}',
    expected: ['P4', 'P3/Q05', 'Q07', 'Q11'],
  },
]
