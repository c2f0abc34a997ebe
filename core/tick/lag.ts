import { isOpen } from '../alarms/alarm.ts'
import { readAlarms } from '../alarms/alarms.ts'
import { isOfLag, judgeLag } from '../alarms/judge-lag.ts'
import { soonestAlarmMs } from '../alarms/soonest.ts'
import type { Core } from '../core.ts'
import { lookAfterAlarms } from './alarms.ts'
import { lookAt } from './look.ts'
import type { TickReport } from './report.ts'
import { tellAgain } from './tell-again.ts'
import type { Turns } from './turns.ts'

/** A group with targets is looked at so often while nothing happens: its targets may not have heard what does. */
const minutesWithTargets = 5
/** What has an alarm is looked at each minute, until that is over. */
const minutesWithAlarm = 1

/** Looks at what waits for groups, awake or asleep, as far as a look is due; raises alarms of it, and tells targets again. */
export async function lookAtLag(core: Core, report: TickReport, turns: Turns): Promise<void> {
  const [names = [], alarms, withTargets] = await Promise.all([
    core.names.get('group'),
    readAlarms(core),
    core.store.listGroupsWithTargets(),
  ])
  const ofLag = [...alarms.values()].filter(alarm => isOpen(alarm) && isOfLag(alarm))
  const watched = new Map<string, number>([
    ...withTargets.map(name => [name, minutesWithTargets] as const),
    ...ofLag.map(({ groupName = '' }) => [groupName, minutesWithAlarm] as const),
  ])
  const hasTargets = new Set(withTargets)
  const nowMs = core.clock.now()
  const all = new Set([...names, ...watched.keys()])
  const due = [...all].filter(name => core.looks.isDue(name, nowMs, watched.get(name)))
  const looked = new Set(due)
  await lookAfterAlarms(core, { alarms, names: all, withTargets: withTargets.filter(name => looked.has(name)) }, turns)
  await turns.each(due, 'lag of group', async groupName => {
    const snapshot = await core.store.readGroup(groupName)
    if (!snapshot) return
    report.looked++
    const look = await lookAt(core, snapshot)
    const isUrgent = hasTargets.has(groupName) && look.lags.some(({ messages }) => messages > 0)
    core.looks.note(groupName, { ...look, isUrgent, withinMs: await soonestAlarmMs(core, look) }, nowMs)
    report.lags.push(...look.lags)
    report.stalled.push(...look.stalled.map(({ topicName, queueId }) => ({ groupName, topicName, queueId })))
    if (hasTargets.has(groupName)) await tellAgain(core, look, report)
    await judgeLag(core, look, alarms)
  })
}
