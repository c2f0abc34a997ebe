import { createHash } from 'node:crypto'
import { alarmId } from '../../../core/alarms/alarm.ts'
import type { Core } from '../../../core/core.ts'
import { stepTarget } from '../../../core/notify/change-target.ts'
import { disabledAfterMs, endStep, pauseMs } from '../../../core/notify/steps.ts'
import type { Target } from '../../../core/notify/target.ts'
import { all } from './all.ts'
import type { Deliveries } from './deliveries.ts'
import { tellDisabled } from './disabled.ts'
import type { AlarmNotice, AlarmSending, Jobs } from './jobs.ts'
import { requestTimeoutMs } from './reach.ts'

/** Tells the targets of alarms of each change. What fails is repeated by a job of its own, for a day. */
export function createAlarmSender(core: Core, jobs: Jobs, deliveries: Deliveries) {
  async function send(target: Target, sending: AlarmSending): Promise<void> {
    if (target.state.isDisabled) return
    const { told, deliveryId, firstAtMs, tries } = sending
    const { type, alarm, text } = told
    const body = JSON.stringify({ type, text, ...alarm })
    const sent = await deliveries.send(target, { what: 'alarm' }, { deliveryId, body, timeoutMs: requestTimeoutMs })
    const ended = await stepTarget(core, target, (each, nowMs) => endStep(each, undefined, sent, nowMs))
    if (ended?.step.next?.disabledBy === 'failures') await tellDisabled(core, ended.target)
    if (sent.outcome === 'succeeded' || !ended || ended.target.state.isDisabled) return
    if (core.clock.now() - firstAtMs >= disabledAfterMs) return
    const { owner, name } = target
    const delayMs = Math.max(pauseMs(tries), sent.retryAfterMs ?? 0)
    await jobs.schedule({ type: 'Alarm', target: { owner, name }, ...sending, tries: tries + 1 }, delayMs)
  }

  return {
    send,
    async tell(told: AlarmNotice): Promise<void> {
      const targets = await core.store.readTargets('alarms')
      const sending = { told, deliveryId: deliveryIdOf(told), firstAtMs: core.clock.now(), tries: 0 }
      await all(targets, target => send(target, sending))
    },
  }
}

/** The same for whoever tells of it again. */
function deliveryIdOf({ type, alarm }: AlarmNotice): string {
  const named = JSON.stringify([type, alarmId(alarm), alarm.raisedAtMs])
  return `alarm_${createHash('sha256').update(named).digest('base64url').slice(0, 24)}`
}
