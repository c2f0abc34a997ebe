import { readWorking } from './admin/group-view.ts'
import { listAll } from './admin/list.ts'
import { isLeftOver, removeTopic } from './admin/remove-topic.ts'
import type { Core } from './core.ts'
import { expireMembers } from './group/expire.ts'
import { rebalance } from './group/rebalance.ts'
import { findStalled } from './group/stalls.ts'
import { unhandledTopics } from './group/unhandled.ts'
import { checkpointTopic } from './log/checkpoint.ts'
import { hashKey } from './log/placement.ts'
import { type AwakeGroup, StoreError } from './store.ts'

/**
 * What happens without a caller, every minute: gives up dead members, finishes rebalances that were asked for, and once
 * an hour records how far each queue reaches. Everything here may run twice at once. Groups without members and without
 * a rebalance to do are asleep and cost nothing; each topic has its own minute of the hour.
 */
export async function tick(core: Core): Promise<TickReport> {
  const report: TickReport = { groups: 0, topics: 0, unhandled: [], stalled: [], failed: [] }
  const attempt = async (what: string, act: () => Promise<void>) => {
    try {
      await act()
    } catch (cause) {
      // One group must not keep the others from their turn; the next tick tries again.
      report.failed.push({ what, cause })
    }
  }
  await attempt('groups', async () => {
    for (const awake of await core.store.listAwakeGroups()) {
      report.groups++
      await attempt(`group ${awake.groupName}`, () => lookAfterGroup(core, awake, report))
    }
  })
  // Where the store fails, nobody was heard; a defect that keeps one group from its turn says nothing of the others.
  if (report.failed.some(({ cause }) => cause instanceof StoreError)) core.silences.forgetAll()
  await attempt('newcomers', () => removeNewcomers(core))
  await attempt('topics', async () => {
    for (const topicName of await listAll(page => core.store.listTopics(page))) {
      if (!isTurnOf(topicName, 60, core.clock.now())) continue
      report.topics++
      await attempt(`topic ${topicName}`, async () => {
        const topic = await checkpointTopic(core, topicName)
        if (topic && (await isLeftOver(core, topic))) await removeTopic(core, topicName)
      })
    }
  })
  return report
}

/** What a tick looked at, what somebody should look at, and what it could not do. */
export type TickReport = {
  groups: number
  topics: number
  /** Groups with members, of whom none handles these topics. */
  unhandled: { groupName: string; topicNames: string[] }[]
  /** Queues with messages that wait for long, and on which nobody gets on. */
  stalled: { groupName: string; topicName: string; queueId: number }[]
  failed: { what: string; cause: unknown }[]
}

/**
 * Whether a group's queues get on is looked at in one minute of so many: with a read for each queue this is what an idle
 * fleet costs most, some 0.2 USD a month for 500 queues.
 */
const stallCheckMinutes = 15
/** A handler may take minutes for a message, or for the first one that it failed to do. */
const stallPatienceMs = 600_000

/** A consumer that registered and never joined a group is nobody's, once it is silent for this long. */
const newcomerPatienceMs = 600_000

async function removeNewcomers(core: Core): Promise<void> {
  const heartbeatBeforeMs = core.clock.now() - newcomerPatienceMs
  const newcomers = await core.store.listNewcomers()
  if (newcomers.length === 0) return
  for (const { consumerId, heartbeatAtMs } of await core.store.readConsumers(newcomers)) {
    if (heartbeatAtMs < heartbeatBeforeMs) await core.store.removeConsumer(consumerId, { heartbeatBeforeMs })
  }
}

async function lookAfterGroup(core: Core, awake: AwakeGroup, report: TickReport): Promise<void> {
  const { groupName } = awake
  const before = await core.store.readGroup(groupName)
  if (before) await expireMembers(core, before)
  await rebalance(core, groupName)
  const after = await core.store.readGroup(groupName)
  const topicNames = after && after.members.length > 0 ? unhandledTopics(after) : []
  if (topicNames.length > 0) report.unhandled.push({ groupName, topicNames })
  if (after && after.members.length > 0 && isTurnOf(groupName, stallCheckMinutes, core.clock.now())) {
    const working = await readWorking(core, after)
    const stalled = await Promise.all(working.map(each => findStalled(core, each, stallPatienceMs)))
    report.stalled.push(...stalled.flat().map(({ topicName, queueId }) => ({ groupName, topicName, queueId })))
  }
  const isQuiet = !after || (after.members.length === 0 && after.group.rebalanceDone >= after.group.rebalanceAsked)
  if (isQuiet) await core.store.sleepGroup(awake)
}

/** Spreads what is done once in so many minutes over them: each name has its own. */
function isTurnOf(name: string, everyMinutes: number, nowMs: number): boolean {
  return Math.floor(nowMs / 60_000) % everyMinutes === hashKey(name) % everyMinutes
}
