import { isName } from '../client/find.ts'
import type { Core } from '../core.ts'
import { topicNamesOf } from '../group/fail-topics.ts'

/**
 * Has each topic of a group know whether the group has targets that hear, so that publishers know it at no cost. Whoever makes,
 * removes, enables or disables a target, or subscribes, first does that and then comes here: each looks for what the other has
 * written, so the later one sees both. Of a target that is made while the last other one is removed an old answer may be written
 * last. A flag that is missing the tick sets where it finds that a group with targets was not told. One that is left, since who
 * removed the last target died before he came here, stays until somebody comes here for the group: its appends are announced to
 * nobody, and paid for.
 */
export async function alignNotifies(core: Core, groupName: string): Promise<void> {
  if (!isName(groupName)) return
  const subscriptions = await core.store.readSubscriptions(groupName)
  if (subscriptions.length === 0) return
  const notifies = (await core.store.readTargets({ groupName })).some(({ state }) => !state.isDisabled)
  for (const topicName of subscriptions.flatMap(topicNamesOf)) {
    const topic = await core.store.readTopic(topicName)
    if (!topic || topic.notifies.includes(groupName) === notifies) continue
    await core.store.setNotifies(topicName, groupName, notifies)
    core.topics.forget(topicName)
  }
}
