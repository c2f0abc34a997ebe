import type { Core } from '../core.ts'
import { leave } from '../group/expire.ts'
import type { DeregisterRequest, DeregisterResponse } from '../protocol/membership.ts'

/** Forgets a consumer and takes it out of its groups. Repeating it changes nothing. */
export async function deRegister(core: Core, request: DeregisterRequest): Promise<DeregisterResponse> {
  if (!request.id) return { suc: false, msg: 'ConsumerDeRegisterRequest id 不能为空！' }
  const removed = await core.store.removeConsumer(request.id)
  if (removed) await leave(core, removed.consumerId, removed.groupNames)
  return { suc: true }
}
