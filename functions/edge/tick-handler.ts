import middy from '@middy/core'
import type { EventBridgeEvent } from 'aws-lambda'
import type { Core } from '../../core/core.ts'
import { rebalance } from '../../core/group/rebalance.ts'
import { tick } from '../../core/tick/tick.ts'
import { type GroupChangedDetail, groupChangedType } from './bus.ts'
import type { LagMetrics } from './env.ts'
import { createLagMetrics } from './lag-metrics.ts'
import { logError } from './log.ts'
import { reportTick } from './metrics.ts'

export type TickEvent = EventBridgeEvent<string, Partial<GroupChangedDetail>>

/** A Lambda handler for the schedule, and for what is said on the bus. It may be invoked twice with the same event. */
export function tickHandler(core: Core, serviceName: string, lagMetrics: LagMetrics = 'behind') {
  const reportLags = createLagMetrics(serviceName, lagMetrics)
  return middy<TickEvent, void>().handler(async (event, context) => {
    const groupName = event.detail?.groupName
    if (event['detail-type'] === groupChangedType && groupName) {
      const outcome = await rebalance(core, groupName)
      // EventBridge invokes again; and so does the tick.
      if (outcome === 'busy') throw new Error(`group ${groupName} changes too fast to be rebalanced`)
      return
    }
    // The rest is for what has begun by then.
    const report = await tick(core, (context.getRemainingTimeInMillis() * 3) / 4)
    const { failed } = report
    reportTick(report, serviceName)
    reportLags(report.lags, core.clock.now())
    for (const { what, cause } of failed) logError('the tick could not finish', { what }, cause)
    if (failed.length > 0) throw new Error(`the tick could not finish ${failed.length} of its tasks`)
  })
}
