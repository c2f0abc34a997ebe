import * as targets from '../../core/admin/targets.ts'
import type {
  AddSecretRequest,
  ListDeliveriesRequest,
  PutAlarmTargetRequest,
  PutTargetRequest,
} from '../../core/protocol/targets.ts'
import type { Routes } from './http.ts'

/** Targets of groups, and those of alarms, whose paths name no group. */
export const targetRoutes = {
  listTargets: (core, _request, { groupName = '' }) => targets.listTargets(core, groupName),
  getTarget: (core, _request, { groupName = '', targetName = '' }) => targets.getTarget(core, groupName, targetName),
  putTarget: (core, request: PutTargetRequest, { groupName = '', targetName = '' }) =>
    targets.putTarget(core, groupName, targetName, request),
  removeTarget: (core, _request, { groupName = '', targetName = '' }) =>
    targets.removeTarget(core, groupName, targetName),
  enableTarget: (core, _request, { groupName = '', targetName = '' }) =>
    targets.enableTarget(core, groupName, targetName),
  disableTarget: (core, _request, { groupName = '', targetName = '' }) =>
    targets.disableTarget(core, groupName, targetName),
  addTargetSecret: (core, request: AddSecretRequest, { groupName = '', targetName = '' }) =>
    targets.addTargetSecret(core, groupName, targetName, request),
  removeTargetSecret: (core, _request, { groupName = '', targetName = '', secretId = '' }) =>
    targets.removeTargetSecret(core, groupName, targetName, secretId),
  testTarget: (core, _request, { groupName = '', targetName = '' }) => targets.testTarget(core, groupName, targetName),
  listTargetDeliveries: (core, request: ListDeliveriesRequest, { groupName = '', targetName = '' }) =>
    targets.listTargetDeliveries(core, groupName, targetName, request),
  listAlarmTargets: core => targets.listTargets(core, undefined),
  getAlarmTarget: (core, _request, { targetName = '' }) => targets.getTarget(core, undefined, targetName),
  putAlarmTarget: (core, request: PutAlarmTargetRequest, { targetName = '' }) =>
    targets.putTarget(core, undefined, targetName, request),
  removeAlarmTarget: (core, _request, { targetName = '' }) => targets.removeTarget(core, undefined, targetName),
  enableAlarmTarget: (core, _request, { targetName = '' }) => targets.enableTarget(core, undefined, targetName),
  disableAlarmTarget: (core, _request, { targetName = '' }) => targets.disableTarget(core, undefined, targetName),
  addAlarmTargetSecret: (core, request: AddSecretRequest, { targetName = '' }) =>
    targets.addTargetSecret(core, undefined, targetName, request),
  removeAlarmTargetSecret: (core, _request, { targetName = '', secretId = '' }) =>
    targets.removeTargetSecret(core, undefined, targetName, secretId),
  testAlarmTarget: (core, _request, { targetName = '' }) => targets.testTarget(core, undefined, targetName),
  listAlarmTargetDeliveries: (core, request: ListDeliveriesRequest, { targetName = '' }) =>
    targets.listTargetDeliveries(core, undefined, targetName, request),
} satisfies Routes
