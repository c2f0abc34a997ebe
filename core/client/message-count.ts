import type { Core } from '../core.ts'
import type { MessageCountRequest, MessageCountResponse } from '../protocol/meta.ts'
import { readGroup } from './find.ts'

/** How many messages of its topics (of those named, if any are) a group has not committed yet. */
export async function getMessageCount(core: Core, request: MessageCountRequest): Promise<MessageCountResponse> {
  const groupName = request.consumerGroupName
  if (!groupName) return { suc: false, msg: 'ConsumerGroupName不能为空！' }
  const snapshot = await readGroup(core, groupName)
  if (!snapshot) return { suc: false, msg: 'ConsumerGroupName不存在！' }
  const topics = request.topics ?? []
  const offsets = snapshot.offsets.filter(offset => topics.length === 0 || topics.includes(offset.topicName))
  const ends = await Promise.all(offsets.map(offset => core.findEnd(offset.topicName, offset.queueId)))
  const count = offsets.reduce((sum, offset, i) => sum + Math.max(0, (ends[i] ?? 1) - 1 - offset.offset), 0)
  return { suc: true, count }
}
