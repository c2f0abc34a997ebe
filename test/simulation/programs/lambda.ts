import type { ClaimRequest, ClaimResponse } from '../../../core/protocol/claims.ts'
import type { CommitRequest } from '../../../core/protocol/commit.ts'
import type { Ordering } from '../../../sdk/src/consumer-options.ts'
import { type LambdaConsumerOptions, lambdaConsumer } from '../../../sdk/src/lambda/lambda-consumer.ts'
import type { Transport } from '../../../sdk/src/transport.ts'
import type { GroupPlan } from '../plan.ts'
import type { Dice } from '../world/dice.ts'
import { connect, type NetworkDeps } from '../world/network.ts'
import type { SimProcess } from '../world/process.ts'
import { type FailurePlan, failingHaste } from './fates.ts'
import { createHandler } from './handler.ts'
import type { Leases } from './leases.ts'
import type { Program } from './program.ts'
import { type Recorder, recordConsumer } from './recorder.ts'

export type LambdaPlan = {
  groupName: string
  topicNames: readonly string[]
  options: Partial<LambdaConsumerOptions>
  /** The longest that an invocation may last. */
  limitMs: number
  /** The longest that a handler call takes. */
  workMs: number
  /** The longest pause until it is invoked again. */
  restMs: number
  /** Nothing may make it late. */
  isClean: boolean
  failures: FailurePlan | undefined
}

export function drawLambda(
  dice: Dice,
  { name: groupName, topicNames, failures }: GroupPlan,
  isClean: boolean,
): LambdaPlan {
  const workMs = dice.spread(1, 3_000)
  const options = {
    maxQueues: dice.pick([1, 2, 10]),
    maxPullBytes: dice.pick([1, 200, 1_000_000]),
    maxBufferedMessages: dice.pick([1, 20, 10_000]),
    asyncCommitIntervalMs: dice.whole(10, 1_000),
    syncCommit: dice.chance(0.2),
    // Where nothing goes wrong every call can end that has begun.
    stopTimeoutMs: isClean ? 4_000 : dice.pick([0, 500, 4_000]),
    reserveMs: isClean ? 3_000 : dice.pick([200, 1_000, 3_000]),
  }
  const limitMs = isClean ? dice.spread(12_000, 25_000) : dice.spread(4_000, 25_000)
  const restMs = dice.spread(100, 3_000)
  const drawn = { groupName, topicNames, options, limitMs, workMs, restMs, isClean, failures }
  if (!failures) return drawn
  const ordering = dice.pick<Ordering>(['queue', 'key'])
  const maxIdleMs = dice.pick([0, 1_000, 5_000])
  return { ...drawn, options: { ...options, ordering, maxIdleMs }, workMs: workMs / failingHaste }
}

/** A Lambda function that a schedule invokes again and again. It may be killed or frozen in the midst of everything. */
export function runLambda(
  recorder: Recorder,
  leases: Leases,
  deps: NetworkDeps,
  process: SimProcess,
  dice: Dice,
  plan: LambdaPlan,
): Program {
  const { groupName, limitMs, failures, workMs } = plan
  const { clock, name } = process
  const network = connect({ ...deps, dice: dice.fork() }, process)
  const { ordering = 'queue' } = plan.options
  const traits = { ordering: typeof ordering === 'string' ? ordering : undefined, failures }
  const record = recordConsumer(recorder, name, network.transport, traits)
  const stopping = new AbortController()

  const watched: Transport = async (path, request, options) => {
    if (path.endsWith('/claimQueues')) return claim(path, request as ClaimRequest, options)
    if (path.endsWith('/commitOffset')) noteGivenUp(request as CommitRequest)
    return record.transport(path, request, options)
  }

  async function claim(path: string, request: ClaimRequest, options: Parameters<Transport>[2]) {
    const sentAtMs = clock.monotonic()
    const answer = (await record.transport(path, request, options)) as ClaimResponse
    for (const { queueId, queueOffsetId, offsetVersion } of Object.values(answer.queues ?? {})) {
      const held = { group: recorder.placeName(groupName, queueOffsetId), queueId, offsetVersion }
      leases.claimed(name, held, { sentAtMs, nowMs: clock.monotonic(), leaseMs: request.leaseMs })
    }
    return answer
  }

  function noteGivenUp({ flag, queueOffsets }: CommitRequest) {
    for (const { queueOffsetId, offsetVersion } of (flag === 1 && queueOffsets) || []) {
      const queueId = recorder.queueIds.get(queueOffsetId) ?? 0
      leases.givenUp({ group: recorder.placeName(groupName, queueOffsetId), queueId, offsetVersion })
    }
  }

  const { weather } = deps
  const handle = createHandler({ recorder, nameAt: record.nameAt, process, dice, weather, failures, workMs })
  const handler = lambdaConsumer({
    transport: watched,
    clock,
    random: dice.fork().random,
    onEvent: record.onEvent,
    groupName,
    topics: Object.fromEntries(plan.topicNames.map(topicName => [topicName, handle])),
    ...plan.options,
  })

  async function run() {
    for (let invocation = 1; !stopping.signal.aborted; invocation++) {
      const endsAtMs = clock.monotonic() + limitMs
      const context = {
        functionName: name,
        awsRequestId: `${invocation}`,
        getRemainingTimeInMillis: () => endsAtMs - clock.monotonic(),
      }
      // It rejects where the service was away; that is why it is invoked again.
      await handler({}, context).catch(() => undefined)
      if (plan.isClean && clock.monotonic() > endsAtMs) recorder.onDefect(`${name} took longer than ${limitMs} ms`)
      await clock.sleep(dice.spread(50, plan.restMs), stopping.signal)
    }
  }

  process.onKilled(() => recorder.history.crashed(name))
  const done = run()
  return {
    process,
    network,
    groupName,
    stop() {
      stopping.abort()
      return done
    },
  }
}
