import type { Core } from '../core.ts'
import { leave } from '../group/expire.ts'
import type { DeregisterRequest, DeregisterResponse } from '../protocol/membership.ts'

/**
 * Forgets a consumer and takes it out of its groups; with `keepsPlace` it has stopped only, and its place waits for the
 * next one. Repeating it changes nothing.
 */
export async function deRegister(core: Core, request: DeregisterRequest): Promise<DeregisterResponse> {
  if (!request.id) return { suc: false, msg: 'ConsumerDeRegisterRequest id 不能为空！' }
  if (request.keepsPlace) {
    const [consumer] = await core.store.readConsumers([request.id])
    for (const groupName of consumer?.groupNames ?? []) await core.store.stopMember(groupName, request.id)
    return { suc: true }
  }
  const removed = await core.store.removeConsumer(request.id)
  if (removed) await leave(core, removed.consumerId, removed.groupNames, 'left')
  return { suc: true }
}
