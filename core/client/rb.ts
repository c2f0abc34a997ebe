import type { Core } from '../core.ts'
import type { RebalanceRequest, ToolResponse } from '../protocol/tool.ts'
import { findGroup } from './find.ts'

/** Has groups looked at: a rebalance that is owed is done, and no other. */
export async function rb(core: Core, request: RebalanceRequest): Promise<ToolResponse> {
  for (const groupName of new Set(request.consumerGroupNames)) {
    if (await findGroup(core, groupName)) await core.bus.groupChanged(groupName)
  }
  return { suc: true }
}
