import type { ConsumerOptions, Ordering } from '../../../sdk/src/consumer-options.ts'
import { createClient, type PmqClientError } from '../../../sdk/src/index.ts'
import type { GroupPlan } from '../plan.ts'
import type { Dice } from '../world/dice.ts'
import { connect, type NetworkDeps } from '../world/network.ts'
import type { SimProcess } from '../world/process.ts'
import { type FailurePlan, failingHaste } from './fates.ts'
import { createHandler } from './handler.ts'
import type { Program } from './program.ts'
import { type Recorder, recordConsumer } from './recorder.ts'

export type ConsumerPlan = {
  groupName: string
  topicNames: readonly string[]
  options: Partial<ConsumerOptions>
  /** The longest that a handler call takes. */
  workMs: number
  failures: FailurePlan | undefined
}

export function drawConsumer(
  dice: Dice,
  { name: groupName, topicNames, failures }: GroupPlan,
  isClean: boolean,
  instanceId: string | undefined,
): ConsumerPlan {
  const impatience = { stopTimeoutMs: dice.pick([0, 500, 10_000]), revokeTimeoutMs: dice.pick([0, 500, 50_000]) }
  const options = {
    asyncCommitIntervalMs: dice.whole(10, 1_000),
    syncCommit: dice.chance(0.2),
    maxPullBytes: dice.pick([1, 200, 1_000_000]),
    maxPullWaitMs: dice.pick([0, 1_000, 5_000]),
    pullDeltaTimeMs: dice.whole(100, 1_000),
    maxBufferedMessages: dice.pick([1, 5, 20, 10_000]),
    heartbeatIntervalMs: dice.pick([1_000, 10_000, 10_000]),
    // So often that one of them would find a change that was missed; and where nothing goes wrong, nothing is mended.
    settingsCheckIntervalMs: isClean ? 0 : 5_000,
    ...(!isClean && impatience),
    ...(instanceId !== undefined && { instanceId }),
  }
  const workMs = dice.spread(1, 3_000)
  if (!failures) return { groupName, topicNames, options, workMs, failures }
  const ordering = dice.pick<Ordering>(['queue', 'key'])
  return { groupName, topicNames, options: { ...options, ordering }, workMs: workMs / failingHaste, failures }
}

/** A consumer as an application runs it: the SDK, and handlers that take their time and fail now and then. */
export function runConsumer(
  recorder: Recorder,
  network: NetworkDeps,
  process: SimProcess,
  dice: Dice,
  plan: ConsumerPlan,
): Program {
  const { history, onDefect } = recorder
  const way = connect({ ...network, dice: dice.fork() }, process)
  const { groupName, topicNames, failures, workMs } = plan
  const { ordering = 'queue' } = plan.options
  const traits = { ordering: typeof ordering === 'string' ? ordering : undefined, failures }
  const record = recordConsumer(recorder, process.name, way.transport, traits)
  const client = createClient({
    transport: record.transport,
    onEvent: record.onEvent,
    clock: process.clock,
    random: dice.fork().random,
  })
  const { weather } = network
  const handle = createHandler({ recorder, nameAt: record.nameAt, process, dice, weather, failures, workMs })
  const topics = Object.fromEntries(topicNames.map(topicName => [topicName, handle]))
  const consumer = client.consumer({ groupName, topics, ...plan.options })
  let isRefused = false
  consumer.start().catch((error: PmqClientError) => {
    // Of two that start at the same moment in one place.
    if (error.code === 'replaced') isRefused = true
    else onDefect(`${process.name} could not start: ${error}`)
  })
  process.onKilled(() => history.crashed(process.name))
  return {
    process,
    network: way,
    groupName,
    instanceId: plan.options.instanceId,
    memberOf: record.groupName,
    hasExpired: record.hasExpired,
    missed: () => record.missed,
    isReplaced: () => isRefused || record.isReplaced(),
    stop: client.close,
  }
}
