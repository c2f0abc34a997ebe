import type { ClaimResponse, RenewResponse } from '../../../core/protocol/claims.ts'
import type { CommitResponse } from '../../../core/protocol/commit.ts'
import { endpoints } from '../../../core/protocol/endpoints.ts'
import type { AssignedQueue } from '../../../core/protocol/membership.ts'
import type { PullResponse } from '../../../core/protocol/pull.ts'
import type { GroupPlan } from '../plan.ts'
import type { Dice } from '../world/dice.ts'
import { connect, type NetworkDeps } from '../world/network.ts'
import type { SimProcess } from '../world/process.ts'
import type { Leases } from './leases.ts'
import type { Program } from './program.ts'
import type { Held, Recorder } from './recorder.ts'

export type ClaimerPlan = {
  groupName: string
  leaseMs: number
  maxQueues: number
  maxBytes: number
  /** The longest that the work on a message takes. */
  workMs: number
  /** The longest pause before it looks for work again. */
  restMs: number
  /** Share of the messages at which it falls asleep, for longer than its lease. It knows nothing of that. */
  naps: number
}

export function drawClaimer(dice: Dice, { name: groupName }: GroupPlan, isClean: boolean): ClaimerPlan {
  return {
    groupName,
    // Where nothing goes wrong a lease outlasts what is done between two renewals.
    leaseMs: isClean ? 10_000 : Math.round(dice.spread(1_000, 20_000)),
    maxQueues: dice.pick([1, 2, 10]),
    maxBytes: dice.pick([1, 200, 1_000_000]),
    workMs: isClean ? dice.spread(1, 500) : dice.spread(1, 3_000),
    restMs: dice.spread(100, 3_000),
    naps: isClean ? 0 : dice.pick([0, 0.01, 0.1]),
  }
}

const timeoutMs = 5_000
const nothing = { messages: [], skipped: 0 }

/**
 * A consumer that comes and goes, of another make than the SDK's: it claims queues, renews its leases while it works through
 * what they have, gives them up, and rests.
 */
export function runClaimer(
  recorder: Recorder,
  leases: Leases,
  deps: NetworkDeps,
  process: SimProcess,
  dice: Dice,
  plan: ClaimerPlan,
): Program {
  const { history } = recorder
  const { clock, name: client } = process
  const { groupName } = plan
  const network = connect({ ...deps, dice: dice.fork() }, process)
  const stopping = new AbortController()

  const ask = async <T>(operation: keyof typeof endpoints, request: object): Promise<T> =>
    (await network.transport(endpoints[operation].path, request, { timeoutMs })) as T

  async function run() {
    while (!stopping.signal.aborted) {
      const claimed = await claim()
      const handled = await Promise.all(claimed.map(queue => consume(queue)))
      if (!handled.some(count => count > 0)) await clock.sleep(dice.spread(50, plan.restMs), stopping.signal)
    }
  }

  async function claim(): Promise<AssignedQueue[]> {
    const { leaseMs, maxQueues } = plan
    const sentAtMs = clock.monotonic()
    const request = { consumerGroupName: groupName, claimant: client, maxQueues, leaseMs }
    try {
      const { queues } = await ask<ClaimResponse>('claimQueues', request)
      const claimed = Object.values(queues ?? {}) as AssignedQueue[]
      for (const queue of claimed) {
        const { queueId, queueOffsetId, offset } = queue
        recorder.queueIds.set(queueOffsetId, queueId)
        const held = heldOf(queue)
        recorder.notePlace(client, { ...held, offset })
        history.assignmentGained(client, { ...held, offset })
        leases.claimed(client, held, { sentAtMs, nowMs: clock.monotonic(), leaseMs })
      }
      return claimed
    } catch {
      // What was claimed without an answer is free again when the lease is over.
      await clock.sleep(dice.spread(100, 2_000), stopping.signal)
      return []
    }
  }

  const heldOf = ({ queueId, queueOffsetId, offsetVersion }: AssignedQueue): Held => {
    return { group: recorder.placeName(groupName, queueOffsetId), queueId, offsetVersion }
  }

  /** Works on a queue to its end, or until it is somebody else's. Answers with how many messages it has handled. */
  async function consume(queue: AssignedQueue): Promise<number> {
    let handled = 0
    const held = heldOf(queue)
    let position = queue.offset
    let renewedAtMs = clock.monotonic()
    let isOurs = true
    const isIdle = () => stopping.signal.aborted || !isOurs

    const renewIfDue = async () => {
      if (clock.monotonic() - renewedAtMs < plan.leaseMs / 3) return
      isOurs = await renew(queue, held)
      renewedAtMs = clock.monotonic()
    }

    while (!isIdle()) {
      const { messages, skipped } = await pull(queue, held, position)
      if (messages.length === 0 && skipped === 0) break
      if (messages.length === 0) position += skipped
      for (const { offset, value } of messages) {
        await renewIfDue()
        if (isIdle()) break
        await handle(held, offset, value)
        position = offset
        handled++
      }
      // Some commit each batch, others only when they are done.
      if (!isIdle() && dice.chance(0.5)) isOurs = (await commit(queue, held, position, 0)) !== 'fenced'
    }
    // Its last commit gives it up. Not answered, it is sent again; in the end the lease does it.
    for (let attempt = 0; isOurs && attempt < 3; attempt++) {
      leases.givenUp(held)
      const outcome = await commit(queue, held, position, 1)
      if (outcome !== 'unknown') break
      await clock.sleep(dice.spread(100, 1_000))
    }
    history.assignmentLost(client, held)
    return handled
  }

  async function pull({ queueId, topicName }: AssignedQueue, held: Held, from: number) {
    const request = { queueId, offsetStart: from, topicName, consumerGroupName: groupName, maxBytes: plan.maxBytes }
    for (let attempt = 0; attempt < 5; attempt++) {
      try {
        const { suc, batches = [], skipped = 0 } = await ask<PullResponse>('pullData', request)
        if (!suc) return nothing
        const messages = batches
          .flatMap(({ offset, msgs }) => msgs.map(({ body: value }, index) => ({ offset: offset + index, value })))
          .filter(({ offset }) => offset > from)
        if (messages.length > 0 || skipped > 0) history.pullOk(client, { ...held, from, messages, skipped })
        return { messages, skipped }
      } catch {
        await clock.sleep(dice.spread(50, 1_000), stopping.signal)
      }
    }
    return nothing
  }

  async function handle({ group, queueId }: Held, offset: number, value: string) {
    for (let isDone = false; !isDone; ) {
      history.handleStart(client, { group, queueId, offset, value })
      if (dice.chance(0.7)) await clock.sleep(dice.spread(0.1, plan.workMs))
      if (dice.chance(plan.naps * deps.weather.naps)) await clock.sleep(plan.leaseMs * (0.5 + 2 * dice.random()))
      isDone = !dice.chance(deps.weather.failures)
      history.handleEnd(client, { group, queueId, offset, value }, isDone ? 'ok' : 'failed')
    }
  }

  async function commit({ queueOffsetId }: AssignedQueue, held: Held, offset: number, flag: 0 | 1) {
    const { offsetVersion } = held
    const op = history.commitInvoke(client, { ...held, offset })
    try {
      const entry = { queueOffsetId, offsetVersion, offset, consumerGroupName: groupName }
      const { results = [] } = await ask<CommitResponse>('commitOffset', { queueOffsets: [entry], flag })
      const [result] = results
      if (!result) throw new Error('no result')
      const { outcome } = result
      history.commitOk(client, op, {
        outcome,
        ...(result.offsetVersion !== undefined && { offsetVersion: result.offsetVersion }),
      })
      return outcome === 'unknown_queue' ? 'fenced' : outcome
    } catch {
      history.commitInfo(client, op)
      return 'unknown'
    }
  }

  /** False: it is somebody else's. Without an answer it works on, and will find out. */
  async function renew({ queueOffsetId, offsetVersion }: AssignedQueue, held: Held): Promise<boolean> {
    const { leaseMs } = plan
    const sentAtMs = clock.monotonic()
    const request = { consumerGroupName: groupName, leaseMs, queues: [{ queueOffsetId, offsetVersion }] }
    try {
      const { results = [] } = await ask<RenewResponse>('renewClaims', request)
      const isRenewed = results[0]?.outcome === 'renewed'
      if (isRenewed) leases.renewed(held, { sentAtMs, leaseMs })
      return isRenewed && results[0]?.stopFlag !== 1
    } catch {
      return true
    }
  }

  process.onKilled(() => history.crashed(client))
  const done = run()
  done.catch(error => recorder.onDefect(`${client} failed: ${error instanceof Error ? error.stack : error}`))
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
