import { removedView } from './admin.ts'
import type { Audited, Endpoint } from './endpoints.ts'
import * as targets from './targets.ts'

/**
 * What can be done with targets, for those of groups and for those of alarms (`…Alarm…`): the same, behind different paths.
 */
const admin = { function: 'admin' } as const

const endpointsAt = <const P extends string, const A extends Audited>(path: P, audits: A, of: string) =>
  ({
    list: { ...admin, method: 'GET', path, response: targets.targetListView, summary: `The targets of ${of}.` },
    get: {
      ...admin,
      method: 'GET',
      path: `${path}/{targetName}`,
      response: targets.targetView,
      summary: `A target of ${of}, and how it goes with it.`,
    },
    remove: {
      ...admin,
      method: 'DELETE',
      path: `${path}/{targetName}`,
      response: removedView,
      audits,
      summary: `Remove a target of ${of}.`,
    },
    enable: {
      ...admin,
      method: 'POST',
      path: `${path}/{targetName}/enable`,
      response: targets.targetView,
      audits,
      summary: `Send to a target of ${of} again, which was disabled or fails.`,
    },
    disable: {
      ...admin,
      method: 'POST',
      path: `${path}/{targetName}/disable`,
      response: targets.targetView,
      audits,
      summary: `Send nothing to a target of ${of} until it is enabled.`,
    },
    addSecret: {
      ...admin,
      method: 'POST',
      path: `${path}/{targetName}/secrets`,
      request: targets.addSecretRequest,
      response: targets.secretView,
      status: 201,
      audits,
      summary: `Sign what is sent to a target of ${of} with one more secret, while it is rotated.`,
    },
    removeSecret: {
      ...admin,
      method: 'DELETE',
      path: `${path}/{targetName}/secrets/{secretId}`,
      response: targets.targetView,
      audits,
      summary: `Sign with a secret of a target of ${of} no more.`,
    },
    test: {
      ...admin,
      method: 'POST',
      path: `${path}/{targetName}/test`,
      response: targets.testView,
      status: 202,
      audits,
      summary: `Send a request that says nothing to a target of ${of}.`,
    },
    listDeliveries: {
      ...admin,
      method: 'GET',
      path: `${path}/{targetName}/deliveries`,
      request: targets.listDeliveriesRequest,
      response: targets.deliveryListView,
      summary: `What was sent to a target of ${of} within seven days, newest first.`,
    },
  }) as const satisfies Record<string, Endpoint>

const ofGroup = endpointsAt('/api/admin/groups/{groupName}/targets', 'target', 'a group')
const ofAlarms = endpointsAt('/api/admin/alarm-targets', 'alarmTarget', 'alarms')

export const targetEndpoints = {
  listTargets: ofGroup.list,
  getTarget: ofGroup.get,
  putTarget: {
    ...admin,
    method: 'PUT',
    path: '/api/admin/groups/{groupName}/targets/{targetName}',
    request: targets.putTargetRequest,
    response: targets.madeTargetView,
    audits: 'target',
    summary: "Have a webhook, a Lambda function or PMQ clients told of a group's messages; or change such a target.",
  },
  removeTarget: ofGroup.remove,
  enableTarget: ofGroup.enable,
  disableTarget: ofGroup.disable,
  addTargetSecret: ofGroup.addSecret,
  removeTargetSecret: ofGroup.removeSecret,
  testTarget: ofGroup.test,
  listTargetDeliveries: ofGroup.listDeliveries,
  listAlarmTargets: ofAlarms.list,
  getAlarmTarget: ofAlarms.get,
  putAlarmTarget: {
    ...admin,
    method: 'PUT',
    path: '/api/admin/alarm-targets/{targetName}',
    request: targets.putAlarmTargetRequest,
    response: targets.madeTargetView,
    audits: 'alarmTarget',
    summary: 'Have a webhook told of alarms; or change it.',
  },
  removeAlarmTarget: ofAlarms.remove,
  enableAlarmTarget: ofAlarms.enable,
  disableAlarmTarget: ofAlarms.disable,
  addAlarmTargetSecret: ofAlarms.addSecret,
  removeAlarmTargetSecret: ofAlarms.removeSecret,
  testAlarmTarget: ofAlarms.test,
  listAlarmTargetDeliveries: ofAlarms.listDeliveries,
} as const satisfies Record<string, Endpoint>
