import type { Core } from '../core.ts'
import type { GroupSnapshot } from '../model.ts'
import { askRebalance } from './ask.ts'
import { removeGroup } from './copies.ts'
import { consumerCopyName } from './copy-names.ts'

/**
 * Gives up the members of a group that have been silent for too long (`silence.ts`). First the consumer is removed, if it
 * has not come back meanwhile: from then on its heartbeats are answered with `deleted: 1`. Then it leaves its groups. A
 * run that dies in between leaves members without a consumer, which the next run lets go. Answers whether it let any go.
 */
export async function expireMembers(core: Core, { members }: GroupSnapshot): Promise<boolean> {
  let hasChanged = false
  const consumers = await core.store.readConsumers(members.map(member => member.consumerId))
  const heartbeats = new Map(consumers.map(consumer => [consumer.consumerId, consumer.heartbeatAtMs]))
  const nowMs = core.clock.now()
  if (consumers.some(({ heartbeatAtMs }) => core.silences.isSilent(heartbeatAtMs, nowMs))) await tryToWrite(core, nowMs)
  for (const member of members) {
    const heartbeatAtMs = heartbeats.get(member.consumerId)
    if (heartbeatAtMs === undefined) {
      hasChanged = true
      await leave(core, member.consumerId, [member.groupName], 'left')
    } else if (core.silences.isOver(member.consumerId, heartbeatAtMs, nowMs)) {
      // Unless it was heard of since it was read.
      const heartbeatBeforeMs = heartbeatAtMs + 1
      const removed = await core.store.removeConsumer(member.consumerId, { heartbeatBeforeMs })
      hasChanged ||= removed !== undefined
      if (removed) await leave(core, member.consumerId, removed.groupNames, 'lost')
    }
  }
  return hasChanged
}

const nobody = 0

/**
 * A store may be read, and take no writes, heartbeats among them: throws then, as at any failure. So a silence counts from
 * when writes were possible on.
 */
async function tryToWrite({ store }: Core, nowMs: number): Promise<void> {
  await store.heartbeat(nobody, nowMs)
}

/** Takes a consumer out of groups, and has them rebalanced. Of a broadcast group its copy goes, with all that it was. */
export async function leave(
  core: Core,
  consumerId: number,
  groupNames: readonly string[],
  how: 'left' | 'lost',
): Promise<void> {
  for (const groupName of groupNames) {
    const outcome = await core.store[how === 'lost' ? 'loseMember' : 'leaveGroup'](groupName, consumerId)
    if (outcome === 'not_a_member') continue
    const group = await core.groups.get(groupName)
    if (group?.mode === 'broadcast') {
      if (outcome === 'lost') await core.store.leaveGroup(groupName, consumerId)
      await removeGroup(core, consumerCopyName(groupName, consumerId))
      await core.store.askRebalance(groupName)
    } else {
      await askRebalance(core, groupName)
    }
  }
}
