import { createGroup, getGroup, listGroups, subscribe } from '../../core/admin/groups.ts'
import { changeStop, resetOffsets } from '../../core/admin/offsets.ts'
import { createTopic, getTopicView, listTopics } from '../../core/admin/topics.ts'
import type { ChangeStopRequest, ResetRequest, SubscribeRequest } from '../../core/protocol/admin.ts'
import type { Routes } from './http.ts'

export const adminRoutes = {
  createTopic,
  listTopics,
  getTopicView: (core, _request, { topicName = '' }) => getTopicView(core, topicName),
  createGroup,
  listGroups,
  getGroup: (core, _request, { groupName = '' }) => getGroup(core, groupName),
  subscribe: (core, request: SubscribeRequest, { groupName = '', topicName = '' }) =>
    subscribe(core, groupName, topicName, request),
  resetOffsets: (core, request: ResetRequest, { groupName = '' }) => resetOffsets(core, groupName, request),
  stopQueues: (core, request: ChangeStopRequest, { groupName = '' }) => changeStop(core, groupName, request, true),
  startQueues: (core, request: ChangeStopRequest, { groupName = '' }) => changeStop(core, groupName, request, false),
} satisfies Routes
