import { type Core, groupHasChanged } from '../core.ts'
import { forEachOf } from '../for-each-of.ts'
import type { GroupSnapshot, Subscription } from '../model.ts'
import { kindOf } from './copy-names.ts'
import { lacksFailTopic, openFailTopic, originOf } from './fail-topics.ts'
import { moveOf } from './handover.ts'
import { alignOffsets } from './offsets.ts'
import { addFailTopic, addSubscription, endSubscription, settingsOf, tellAssignment } from './subscriptions.ts'

const copiesAtOnce = 25
const maxRuns = 10

/**
 * Gives copies of a group its subscriptions. True: something was not as it should be.
 *
 * @param able which consumers may have the queues of their copies; undefined: all
 */
export async function alignWith(
  core: Core,
  originName: string,
  copyNames: readonly string[],
  able?: ReadonlySet<number>,
): Promise<boolean> {
  let hasChanged = false
  for (let from = 0; from < copyNames.length; from += copiesAtOnce) {
    let left = copyNames.slice(from, from + copiesAtOnce)
    for (let run = 0; left.length > 0 && run < maxRuns; run++) {
      const copies = (await Promise.all(left.map(name => core.store.readGroup(name)))).filter(
        copy => copy !== undefined,
      )
      // Read behind them: what a copy has and its origin has not was ended there, and is not on its way.
      const wanted = await core.store.readSubscriptions(originName)
      const changes = await Promise.all(copies.map(copy => alignCopy(core, wanted, copy, able)))
      left = copies.filter((_, i) => changes[i]).map(({ group }) => group.name)
      hasChanged ||= left.length > 0
    }
  }
  return hasChanged
}

/** Gives a copy the subscriptions of its origin, and a copy for one consumer the queues of its topics. True: it lacked some. */
async function alignCopy(
  core: Core,
  wanted: readonly Subscription[],
  copy: GroupSnapshot,
  able?: ReadonlySet<number>,
): Promise<boolean> {
  const { store } = core
  const { name: copyName, origin, rbVersion } = copy.group
  const wantedNames = new Set(wanted.map(({ topicName }) => topicName))
  const found = new Set([...copy.subscriptions, ...copy.offsets].map(originOf))
  const ended = [...found].filter(topicName => !wantedNames.has(topicName))
  for (const topicName of ended) await endSubscription(core, copy, topicName)
  let [hasNew, hasSettings] = [false, false]
  for (const subscription of wanted) {
    const { topicName } = subscription
    const settings = settingsOf(subscription)
    const own = copy.subscriptions.find(candidate => candidate.topicName === topicName)
    const isLacking = own === undefined || lacksFailTopic(copy.group, own)
    const topic = isLacking ? await store.readTopic(topicName) : undefined
    const failTopic = topic && (await openFailTopic(core, copy.group, topic))
    if (own === undefined) {
      if (topic === undefined) continue
      await addSubscription(core, copy, topic, failTopic, settings)
      hasNew = true
    } else if (failTopic) {
      await addFailTopic(core, copy, own, failTopic, settings)
      hasNew = true
    } else if (Object.entries(settings).some(([name, value]) => own[name as keyof typeof settings] !== value)) {
      // To pass them on: a sub-environment's copy of a broadcast group has copies of its own.
      if (copy.copies.length > 0) await store.askRebalance(copyName)
      await store.updateSubscription(copyName, topicName, settings)
      hasSettings = true
    }
  }
  if (origin && 'consumerId' in origin) {
    const owner = (able?.has(origin.consumerId) ?? true) ? origin.consumerId : 0
    const hasMoved = await giveAll(core, copy, owner)
    const { hasAdded, hasRemoved } = await alignOffsets(core, copy, owner)
    const hasUntold = copy.offsets.some(offset => offset.rbVersion > rbVersion)
    hasNew ||= hasAdded || hasRemoved || hasMoved
    if (hasNew || hasUntold) await tellAssignment(core, copyName)
  }
  const hasChanged = hasNew || hasSettings || ended.length > 0
  if (!hasChanged) return false
  groupHasChanged(core, copyName)
  if (kindOf(copy.group) === 'group') await core.bus.groupChanged(copyName)
  return true
}

/** Gives the queues of a copy to its consumer, or takes them from it: 0. True: some were not as they should be. */
async function giveAll(core: Core, { group, offsets }: GroupSnapshot, owner: number): Promise<boolean> {
  const others = offsets.filter(({ consumerId }) => consumerId !== owner)
  await forEachOf(others, offset => core.store.moveQueue(moveOf(group, offset, { consumerId: owner })))
  return others.length > 0
}
