import { listAlarms } from '../../core/admin/alarms.ts'
import { dropFailed, resendFailed } from '../../core/admin/change-failed.ts'
import { getFailed, listFailed } from '../../core/admin/failed.ts'
import { getGroup } from '../../core/admin/group-view.ts'
import { createGroup, deleteGroup, listGroups, updateGroup } from '../../core/admin/groups.ts'
import { changeStop, resetOffsets } from '../../core/admin/offsets.ts'
import { addQueues, changeQueue, removeQueue } from '../../core/admin/queues.ts'
import { removeTopic } from '../../core/admin/remove-topic.ts'
import { subscribe, unsubscribe } from '../../core/admin/subscriptions.ts'
import { createTopic, getTopicView, listTopics, updateTopic } from '../../core/admin/topics.ts'
import { listAudit } from '../../core/audit/list-audit.ts'
import { recordAct } from '../../core/audit/record-act.ts'
import type {
  AddQueuesRequest,
  ChangeQueueRequest,
  ChangeStopRequest,
  ResetRequest,
  SubscribeRequest,
  UpdateGroupRequest,
  UpdateTopicRequest,
} from '../../core/protocol/admin.ts'
import type { DropFailedRequest, ListFailedRequest, ResendFailedRequest } from '../../core/protocol/failed.ts'
import type { HttpOptions, Routes } from './http.ts'
import { logError } from './log.ts'
import { targetRoutes } from './target-routes.ts'

export const adminRoutes = {
  createTopic,
  listTopics,
  getTopicView: (core, _request, { topicName = '' }) => getTopicView(core, topicName),
  updateTopic: (core, request: UpdateTopicRequest, { topicName = '' }) => updateTopic(core, topicName, request),
  removeTopic: (core, _request, { topicName = '' }) => removeTopic(core, topicName),
  addQueues: (core, request: AddQueuesRequest, { topicName = '' }) => addQueues(core, topicName, request),
  changeQueue: (core, request: ChangeQueueRequest, { topicName = '', queueId = '' }) =>
    changeQueue(core, topicName, queueId, request),
  removeQueue: (core, _request, { topicName = '', queueId = '' }) => removeQueue(core, topicName, queueId),
  createGroup,
  listGroups,
  getGroup: (core, _request, { groupName = '' }) => getGroup(core, groupName),
  updateGroup: (core, request: UpdateGroupRequest, { groupName = '' }) => updateGroup(core, groupName, request),
  removeGroup: (core, _request, { groupName = '' }) => deleteGroup(core, groupName),
  unsubscribe: (core, _request, { groupName = '', topicName = '' }) => unsubscribe(core, groupName, topicName),
  subscribe: (core, request: SubscribeRequest, { groupName = '', topicName = '' }) =>
    subscribe(core, groupName, topicName, request),
  listFailed: (core, request: ListFailedRequest, { groupName = '', topicName = '' }) =>
    listFailed(core, groupName, topicName, request),
  getFailed: (core, _request, { groupName = '', topicName = '', failedId = '' }) =>
    getFailed(core, groupName, topicName, failedId),
  resendFailed: (core, request: ResendFailedRequest, { groupName = '', topicName = '' }) =>
    resendFailed(core, groupName, topicName, request),
  dropFailed: (core, request: DropFailedRequest, { groupName = '', topicName = '' }) =>
    dropFailed(core, groupName, topicName, request),
  resetOffsets: (core, request: ResetRequest, { groupName = '' }) => resetOffsets(core, groupName, request),
  stopQueues: (core, request: ChangeStopRequest, { groupName = '' }) => changeStop(core, groupName, request, true),
  startQueues: (core, request: ChangeStopRequest, { groupName = '' }) => changeStop(core, groupName, request, false),
  ...targetRoutes,
  listAlarms,
  listAudit,
} satisfies Routes

export const adminOptions: HttpOptions = {
  record: (core, act, perform) =>
    recordAct(core, act, perform, (entryId, error) => {
      logError('the audit log could not be told how an act ended', { act: act.name, entryId }, error)
    }),
}
