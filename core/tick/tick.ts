import { listAll } from '../admin/list.ts'
import { isLeftOver, removeTopic } from '../admin/remove-topic.ts'
import { isOpen } from '../alarms/alarm.ts'
import { readAlarms } from '../alarms/alarms.ts'
import { isOfLag, judgeLag } from '../alarms/judge-lag.ts'
import type { Core } from '../core.ts'
import { forEachOf } from '../for-each-of.ts'
import { checkpointTopic } from '../log/checkpoint.ts'
import { alignNotifies } from '../notify/align.ts'
import type { Target } from '../notify/target.ts'
import { StoreError } from '../store.ts'
import { type Each, lookAfterAlarms } from './alarms.ts'
import { lookAfterGroup } from './groups.ts'
import { type Ends, type Look, lookAt } from './look.ts'
import { isTurnOf } from './looks.ts'
import { removeNewcomers } from './newcomers.ts'
import { emptyReport, type TickReport } from './report.ts'

/** What a function has that is called every minute, without the time in which it ends. */
const usualBudgetMs = 45_000

/**
 * What happens without a caller, every minute: gives up dead members, finishes rebalances that were asked for, looks at what
 * waits for groups and raises alarms of it, tells targets again what they were not told, and once an hour records how far each
 * queue reaches. Everything here may run twice at once.
 *
 * It takes groups in another order each time, and begins with none when its time is over: with more of them than fit into one
 * tick all get their turn within a few. Nothing waits for that but what was lost: members that change ask by themselves.
 */
export async function tick(core: Core, budgetMs = usualBudgetMs): Promise<TickReport> {
  const report = emptyReport()
  const endsAtMs = core.clock.monotonic() + budgetMs
  const isOver = () => core.clock.monotonic() >= endsAtMs
  const attempt = async (what: string, act: () => Promise<void>) => {
    try {
      await act()
    } catch (cause) {
      // One group must not keep the others from their turn; the next tick tries again.
      report.failed.push({ what, cause })
    }
  }
  const each: Each = (names, what, act) =>
    forEachOf(shuffle(names, core.random), async name => {
      if (isOver()) report.left++
      else await attempt(`${what} ${name}`, () => act(name))
    })

  await attempt('groups', async () => {
    const awake = new Map((await core.store.listAwakeGroups()).map(group => [group.groupName, group]))
    await each([...awake.keys()], 'group', async groupName => {
      report.groups++
      const group = awake.get(groupName)
      if (group) await lookAfterGroup(core, group, report)
    })
  })
  // Where the store fails, nobody was heard; a defect that keeps one group from its turn says nothing of the others.
  if (report.failed.some(({ cause }) => cause instanceof StoreError)) core.silences.forgetAll()
  await attempt('newcomers', () => removeNewcomers(core))
  await attempt('lag', () => lookAtLag(core, report, each))
  await attempt('topics', async () => {
    const names = await listAll(page => core.store.listTopics(page))
    const nowMs = core.clock.now()
    // Late is as good: retention is a day ahead of deletion.
    for (const topicName of names.filter(name => isTurnOf(name, 60, nowMs))) {
      report.topics++
      await attempt(`topic ${topicName}`, async () => {
        const topic = await checkpointTopic(core, topicName)
        if (topic && (await isLeftOver(core, topic))) await removeTopic(core, topicName)
      })
    }
  })
  return report
}

/** A group with targets is looked at so often while nothing happens: its targets may not have heard what does. */
const minutesWithTargets = 5

async function lookAtLag(core: Core, report: TickReport, each: Each): Promise<void> {
  const [names, alarms, withTargets] = await Promise.all([
    listAll(page => core.store.listGroups(page)),
    readAlarms(core),
    core.store.listGroupsWithTargets(),
  ])
  const open = [...alarms.values()].filter(isOpen)
  const watched = new Map<string, number>([
    ...withTargets.map(name => [name, minutesWithTargets] as const),
    ...open.flatMap(({ kind, groupName }) => (isOfLag({ kind }) && groupName ? [[groupName, 1] as const] : [])),
  ])
  const nowMs = core.clock.now()
  const ends: Ends = new Map()
  const due = names.filter(name => core.looks.isDue(name, nowMs, watched.get(name)))
  const looked = new Set(due)
  await lookAfterAlarms(core, { alarms, names, withTargets: withTargets.filter(name => looked.has(name)) }, each)
  await each(due, 'lag of group', async groupName => {
    const snapshot = await core.store.readGroup(groupName)
    if (!snapshot) return
    report.looked++
    const look = await lookAt(core, snapshot, ends)
    const hasTargets = withTargets.includes(groupName)
    core.looks.note(
      groupName,
      { ...look, isUrgent: hasTargets && look.lags.some(({ messages }) => messages > 0) },
      nowMs,
    )
    report.lags.push(...look.lags)
    report.stalled.push(...look.stalled.map(({ topicName, queueId }) => ({ groupName, topicName, queueId })))
    if (hasTargets) await tellAgain(core, look, report)
    await judgeLag(core, look, alarms)
  })
}

/** So many queues at once are told of again; the others within the next minutes. */
const maxRetold = 1_000

/** What waits though a target should have heard of it: word was lost, or whoever heard it has given up. */
async function tellAgain(core: Core, { groupName, idle }: Look, report: TickReport): Promise<void> {
  const queues = idle.slice(0, Math.max(0, maxRetold - report.retold))
  if (queues.length === 0) return
  // One that fails has its own time, and one that is disabled hears nothing.
  const targets = await core.store.readTargets({ groupName })
  const hears = ({ state: { isDisabled, openUntilMs = 0 } }: Target) => !isDisabled && openUntilMs <= core.clock.now()
  if (!targets.some(hears)) return
  report.retold += queues.length
  await alignNotifies(core, groupName)
  await forEachOf(queues, ({ topicName, queueId }) =>
    core.bus.tell({ type: 'QueueAppended', topicName, queueId, isDue: true }),
  )
}

/** Fisher and Yates. */
function shuffle<T>(items: readonly T[], random: () => number): T[] {
  const shuffled = [...items]
  for (let i = shuffled.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1))
    const [a, b] = [shuffled[i] as T, shuffled[j] as T]
    shuffled[i] = b
    shuffled[j] = a
  }
  return shuffled
}
