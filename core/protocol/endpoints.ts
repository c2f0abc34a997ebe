import type * as v from 'valibot'
import * as admin from './admin.ts'
import * as alarms from './alarms.ts'
import * as audit from './audit.ts'
import * as claims from './claims.ts'
import * as commit from './commit.ts'
import * as failed from './failed.ts'
import * as failures from './failures.ts'
import * as membership from './membership.ts'
import * as meta from './meta.ts'
import * as publish from './publish.ts'
import * as pull from './pull.ts'
import { targetEndpoints } from './target-endpoints.ts'
import * as tool from './tool.ts'

/** The Lambda function that serves an endpoint: split by permission and traffic, not by route. */
export type FunctionName = 'publish' | 'consume' | 'admin'

export type Endpoint = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** API Gateway's notation: `{name}` stands for one segment. */
  readonly path: string
  readonly function: FunctionName
  /**
   * What it reads: of a GET the query parameters, else the body. Absent: neither. Query parameters are a strict object of
   * texts, numbers and booleans (`v.optional` where they may be left out).
   */
  readonly request?: v.GenericSchema
  readonly response: v.GenericSchema
  /** Status of a success, where it is not 200. */
  readonly status?: number
  /** PMQ's answer to a client that sends no body at all; without one, that is an empty request. */
  readonly refusalOfNothing?: string
  readonly summary: string
  /** What it changes, as an act of an operator: the audit log shows that before and after. Each such endpoint has one. */
  readonly audits?: Audited
}

/** What acts of operators change; how it looks in the audit log is in `core/audit/views.ts`. */
export type Audited =
  | 'topic'
  | 'group'
  | 'groupWithOffsets'
  | 'subscription'
  | 'subscriptionWithOffsets'
  | 'offsets'
  | 'failedMessages'
  | 'target'
  | 'alarmTarget'

const consumer = '/api/client/consumer'
const toolPath = '/api/client/tool'
const metaPath = '/api/server/meta'
const post = { method: 'POST' } as const
const consume = { method: 'POST', function: 'consume' } as const

/**
 * Every endpoint of the service, once: routes, validation, types, infrastructure and `docs/openapi.json` come from this
 * table. Paths and fields of the client endpoints are PMQ's.
 */
export const endpoints = {
  publish: {
    ...post,
    function: 'publish',
    path: `${consumer}/publish`,
    request: publish.publishRequest,
    response: publish.publishResponse,
    refusalOfNothing: 'request is null!',
    summary: 'Append messages to a topic; answered when they are durable.',
  },
  // It appends to the log, as a publish does, and takes the same permissions.
  publishAndUpdateResultFailMsg: {
    ...post,
    function: 'publish',
    path: `${consumer}/publishAndUpdateResultFailMsg`,
    request: failures.failuresRequest,
    response: failures.failuresResponse,
    summary:
      'Store what a consumer failed to handle in the fail topic of its subscription; answered when it is durable.',
  },
  getTopicQueueIds: {
    ...post,
    function: 'publish',
    path: `${metaPath}/getTopicQueueIds`,
    request: meta.topicQueueIdsRequest,
    response: meta.topicQueueIdsResponse,
    summary: 'The writable queues of topics.',
  },
  register: {
    ...consume,
    path: `${consumer}/register`,
    request: membership.registerRequest,
    response: membership.registerResponse,
    refusalOfNothing: 'ConsumerRegisterRequest不能为空！',
    summary: 'Register a consumer by name; the same name gets the same id.',
  },
  registerConsumerGroup: {
    ...consume,
    path: `${consumer}/registerConsumerGroup`,
    request: membership.registerGroupRequest,
    response: membership.registerGroupResponse,
    summary: 'Join consumer groups.',
  },
  deRegister: {
    ...consume,
    path: `${consumer}/deRegister`,
    request: membership.deregisterRequest,
    response: membership.deregisterResponse,
    refusalOfNothing: 'ConsumerDeRegisterRequest id 不能为空！',
    summary: 'Leave all groups and forget the consumer.',
  },
  heartbeat: {
    ...consume,
    path: `${consumer}/heartbeat`,
    request: membership.heartbeatRequest,
    response: membership.heartbeatResponse,
    summary: 'Say that the consumer lives; hear whether its groups have changed.',
  },
  getConsumerGroupPolling: {
    ...consume,
    path: `${consumer}/getConsumerGroupPolling`,
    request: membership.pollRequest,
    response: membership.pollResponse,
    summary: 'The groups whose version is above the given one, with the queues assigned to this consumer (long poll).',
  },
  pullData: {
    ...consume,
    path: `${consumer}/pullData`,
    request: pull.pullRequest,
    response: pull.pullResponse,
    refusalOfNothing: '参数不能为空！',
    summary: 'Read messages of a queue after an offset.',
  },
  commitOffset: {
    ...consume,
    path: `${consumer}/commitOffset`,
    request: commit.commitRequest,
    response: commit.commitResponse,
    summary: 'Record how far queues are consumed.',
  },
  claimQueues: {
    ...consume,
    path: `${consumer}/claimQueues`,
    request: claims.claimRequest,
    response: claims.claimResponse,
    summary: 'Claim queues of a claimed group for a time; give them up by a final commit.',
  },
  renewClaims: {
    ...consume,
    path: `${consumer}/renewClaims`,
    request: claims.renewRequest,
    response: claims.renewResponse,
    summary: 'Prolong claims.',
  },
  getMessageCount: {
    ...consume,
    path: `${consumer}/getMessageCount`,
    request: meta.messageCountRequest,
    response: meta.messageCountResponse,
    summary: 'How many messages a group has not committed yet.',
  },
  getMetaGroup: {
    ...consume,
    path: `${metaPath}/getMetaGroup`,
    request: meta.metaGroupRequest,
    response: meta.metaGroupResponse,
    summary: 'Where to send requests: to the URL that the client has.',
  },
  getMeta: {
    ...consume,
    path: `${metaPath}/getMeta`,
    request: meta.metaRequest,
    response: meta.metaResponse,
    summary: 'The same for older clients.',
  },
  getTopic: {
    ...consume,
    path: `${metaPath}/getTopic`,
    request: meta.topicsOfGroupRequest,
    response: meta.topicsOfGroupResponse,
    summary: 'The topics that a group subscribes to.',
  },
  getGroupTopic: {
    ...consume,
    path: `${metaPath}/getGroupTopic`,
    request: meta.topicsOfGroupsRequest,
    response: meta.topicsOfGroupsResponse,
    summary: 'The topics that several groups subscribe to.',
  },
  rb: {
    ...consume,
    path: `${toolPath}/rb`,
    request: tool.rebalanceRequest,
    response: tool.toolResponse,
    summary: 'Have groups rebalanced, if they owe it.',
  },
  getIp: {
    method: 'GET',
    function: 'consume',
    path: `${toolPath}/getIp`,
    response: tool.ipResponse,
    summary: "The caller's address, as text.",
  },
  addLog: {
    ...consume,
    path: `${toolPath}/addLog`,
    request: tool.toolRequest,
    response: tool.toolResponse,
    summary: 'Accepted and dropped: a step that a PMQ client traced.',
  },
  addCat: {
    ...consume,
    path: `${toolPath}/addCat`,
    request: tool.toolRequest,
    response: tool.toolResponse,
    summary: 'Accepted and dropped: a monitoring event of a PMQ client.',
  },
  addOpLog: {
    ...consume,
    path: `${toolPath}/addOpLog`,
    request: tool.toolRequest,
    response: tool.toolResponse,
    summary: 'Accepted and dropped: a note on what a PMQ client did.',
  },
  sendMail: {
    ...consume,
    path: `${toolPath}/sendMail`,
    request: tool.toolRequest,
    response: tool.toolResponse,
    summary: 'Accepted and dropped: a warning that a PMQ client would have mailed.',
  },
  createTopic: {
    method: 'POST',
    function: 'admin',
    path: '/api/admin/topics',
    request: admin.createTopicRequest,
    response: admin.topicView,
    status: 201,
    audits: 'topic',
    summary: 'Create a topic with its queues.',
  },
  listTopics: {
    method: 'GET',
    function: 'admin',
    path: '/api/admin/topics',
    response: admin.topicListView,
    summary: 'Names of all topics.',
  },
  getTopicView: {
    method: 'GET',
    function: 'admin',
    path: '/api/admin/topics/{topicName}',
    response: admin.topicView,
    summary: 'A topic, its queues and how far they reach.',
  },
  updateTopic: {
    method: 'PUT',
    function: 'admin',
    path: '/api/admin/topics/{topicName}',
    request: admin.updateTopicRequest,
    response: admin.topicView,
    audits: 'topic',
    summary: 'Change from which lag on groups that are behind in a topic raise an alarm.',
  },
  removeTopic: {
    method: 'DELETE',
    function: 'admin',
    path: '/api/admin/topics/{topicName}',
    response: admin.removedView,
    audits: 'topic',
    summary: 'Remove a topic that no group subscribes to. Its messages end with their retention.',
  },
  addQueues: {
    method: 'POST',
    function: 'admin',
    path: '/api/admin/topics/{topicName}/queues',
    request: admin.addQueuesRequest,
    response: admin.topicView,
    status: 201,
    audits: 'topic',
    summary: 'Add queues to a topic while it is in use.',
  },
  changeQueue: {
    method: 'PUT',
    function: 'admin',
    path: '/api/admin/topics/{topicName}/queues/{queueId}',
    request: admin.changeQueueRequest,
    response: admin.topicView,
    audits: 'topic',
    summary: 'Make a queue read-only, or writable again.',
  },
  removeQueue: {
    method: 'DELETE',
    function: 'admin',
    path: '/api/admin/topics/{topicName}/queues/{queueId}',
    response: admin.topicView,
    audits: 'topic',
    summary: 'Remove a queue that is read-only and that every group has consumed.',
  },
  createGroup: {
    method: 'POST',
    function: 'admin',
    path: '/api/admin/groups',
    request: admin.createGroupRequest,
    response: admin.groupView,
    status: 201,
    audits: 'group',
    summary: 'Create a consumer group.',
  },
  listGroups: {
    method: 'GET',
    function: 'admin',
    path: '/api/admin/groups',
    response: admin.groupListView,
    summary: 'Names of all consumer groups.',
  },
  getGroup: {
    method: 'GET',
    function: 'admin',
    path: '/api/admin/groups/{groupName}',
    response: admin.groupView,
    summary: 'A group: subscriptions, members, and per queue owner, offset and lag.',
  },
  updateGroup: {
    method: 'PUT',
    function: 'admin',
    path: '/api/admin/groups/{groupName}',
    request: admin.updateGroupRequest,
    response: admin.groupView,
    audits: 'group',
    summary: 'Change which members of a group may be given queues, and how many.',
  },
  removeGroup: {
    method: 'DELETE',
    function: 'admin',
    path: '/api/admin/groups/{groupName}',
    response: admin.removedView,
    audits: 'groupWithOffsets',
    summary: 'Remove a group that nobody is a member of, and how far it was.',
  },
  unsubscribe: {
    method: 'DELETE',
    function: 'admin',
    path: '/api/admin/groups/{groupName}/subscriptions/{topicName}',
    response: admin.groupView,
    audits: 'subscriptionWithOffsets',
    summary: 'End a subscription, and forget how far the group was.',
  },
  subscribe: {
    method: 'PUT',
    function: 'admin',
    path: '/api/admin/groups/{groupName}/subscriptions/{topicName}',
    request: admin.subscribeRequest,
    response: admin.groupView,
    audits: 'subscription',
    summary: 'Subscribe a group to a topic, from now on; or change the settings of its subscription.',
  },
  listFailed: {
    method: 'GET',
    function: 'admin',
    path: '/api/admin/groups/{groupName}/subscriptions/{topicName}/failed',
    request: failed.listFailedRequest,
    response: failed.failedListView,
    summary: 'What a group failed to handle of a topic: what is retried, dead letters, and what has become of others.',
  },
  getFailed: {
    method: 'GET',
    function: 'admin',
    path: '/api/admin/groups/{groupName}/subscriptions/{topicName}/failed/{failedId}',
    response: failed.failedDetailView,
    summary: 'One failed message, with its body and its history.',
  },
  resendFailed: {
    method: 'POST',
    function: 'admin',
    path: '/api/admin/groups/{groupName}/subscriptions/{topicName}/failed/resend',
    audits: 'failedMessages',
    request: failed.resendFailedRequest,
    response: failed.changeFailedView,
    summary: 'Have dead letters handled again by their group, as often as new failures.',
  },
  dropFailed: {
    method: 'POST',
    function: 'admin',
    path: '/api/admin/groups/{groupName}/subscriptions/{topicName}/failed/drop',
    audits: 'failedMessages',
    request: failed.dropFailedRequest,
    response: failed.changeFailedView,
    summary: 'Give dead letters up, for a reason. They stay listed until they are past retention.',
  },
  resetOffsets: {
    method: 'POST',
    function: 'admin',
    path: '/api/admin/groups/{groupName}/reset',
    request: admin.resetRequest,
    response: admin.resetView,
    audits: 'offsets',
    summary: 'Set the offsets of queues of a group: to an offset, a time, the start or the end; running or not.',
  },
  stopQueues: {
    method: 'POST',
    function: 'admin',
    path: '/api/admin/groups/{groupName}/stop',
    request: admin.changeStopRequest,
    response: admin.groupView,
    audits: 'offsets',
    summary: 'Stop queues of a group: nothing of them is handed out until they are started again.',
  },
  startQueues: {
    method: 'POST',
    function: 'admin',
    path: '/api/admin/groups/{groupName}/start',
    request: admin.changeStopRequest,
    response: admin.groupView,
    audits: 'offsets',
    summary: 'Start queues that were stopped.',
  },
  ...targetEndpoints,
  listAlarms: {
    method: 'GET',
    function: 'admin',
    path: '/api/admin/alarms',
    request: alarms.listAlarmsRequest,
    response: alarms.alarmListView,
    summary:
      'What is the matter: groups that are behind, messages that will be past retention unread, targets that were disabled.',
  },
  listAudit: {
    method: 'GET',
    function: 'admin',
    path: '/api/admin/audit',
    request: audit.listAuditRequest,
    response: audit.auditView,
    summary: 'Who changed what, newest first, with what was there before and after.',
  },
} as const satisfies Record<string, Endpoint>

export type EndpointName = keyof typeof endpoints
