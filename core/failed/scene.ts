import { isName, readGroup } from '../client/find.ts'
import type { Core } from '../core.ts'
import { failTopicName } from '../group/fail-topics.ts'
import type { Subscription, Topic, TopicSnapshot } from '../model.ts'
import { PmqError } from '../protocol/errors.ts'
import type { FailedMessage } from './records.ts'

/** What the failed messages of a subscription are seen by. */
export type FailedScene = {
  failTopic: TopicSnapshot
  failOf: NonNullable<Topic['failOf']>
  /** Undefined: it has ended. What failed stays until its time is over. */
  subscription: Subscription | undefined
  /** How a record is to be taken. */
  stateOf(record: FailedMessage): FailedMessage['state']
}

/**
 * Reads it before any record is: what a consumer has committed past, it has confirmed before, or sent on. So what is still
 * `retrying` when it is read afterwards, and lies at or below what was committed by then, was passed over.
 */
export async function openFailed(core: Core, groupName: string, topicName: string): Promise<FailedScene> {
  const name = failTopicName(groupName, topicName)
  const failTopic = isName(name) ? await core.store.readTopic(name) : undefined
  const { failOf } = failTopic?.topic ?? {}
  if (!failTopic || failOf?.groupName !== groupName || failOf.topicName !== topicName) {
    throw new PmqError('not_found', `group ${groupName} has no fail topic for topic ${topicName}`)
  }
  const { subscriptions = [], offsets = [] } = (await readGroup(core, groupName)) ?? {}
  const subscription = subscriptions.find(each => each.topicName === topicName)
  const committed = new Map(offsets.map(({ queueId, offset }) => [queueId, offset]))
  const isPassedOver = ({ place: { queueId, offset } }: FailedMessage) =>
    subscription === undefined || offset <= (committed.get(queueId) ?? 0)
  return {
    failTopic,
    failOf,
    subscription,
    stateOf: record => (record.state === 'retrying' && isPassedOver(record) ? 'exhausted' : record.state),
  }
}
