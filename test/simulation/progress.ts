import type { Finding } from './judge.ts'
import type { Plan } from './plan.ts'
import { readGroups, type World } from './world/world.ts'

const lookEveryMs = 250

/** Waits within a run: for work to end, and for groups to have done all that there is. */
export function createProgress({ scheduler, shared }: World, plan: Plan, findings: Finding[]) {
  /** Lets time pass until the work has ended. If it takes longer than it may, that is a finding. */
  async function expectWithin(ms: number, property: string, failure: string, work: Promise<unknown>) {
    let isDone = false
    work.then(
      () => {
        isDone = true
      },
      error => findings.push({ property, text: `${property}: ${failure}: ${error}` }),
    )
    const untilMs = scheduler.nowMs + ms
    await scheduler.run(() => isDone || scheduler.nowMs >= untilMs)
    if (!isDone) findings.push({ property, text: `${property}: ${failure} within ${ms} ms` })
  }

  /** Lets time pass until every group has committed everything. Queues that stay behind for longer are findings. */
  async function expectDrained(ms: number): Promise<boolean> {
    const untilMs = scheduler.nowMs + ms
    let isDrained = false
    const look = async () => {
      isDrained = (await lags()).length === 0
      if (!isDrained) scheduler.after(lookEveryMs, () => void look())
    }
    void look()
    await scheduler.run(() => isDrained || scheduler.nowMs >= untilMs)
    for (const { groupName, queueId, offset, end, consumerId, offsetVersion } of isDrained ? [] : await lags()) {
      const place = `group ${groupName} stays at ${offset} of ${end - 1} in queue ${queueId}`
      const text = `Q11: ${place} (owner ${consumerId}, offsetVersion ${offsetVersion}), at ${scheduler.nowMs} ms`
      findings.push({ property: 'Q11', text })
    }
    return isDrained
  }

  async function lags() {
    const groups = await readGroups(
      shared,
      plan.groups.map(({ name }) => name),
    )
    const offsets = [...groups.values()].flatMap(group => group.offsets)
    const all = await Promise.all(offsets.map(async offset => ({ ...offset, end: await shared.endOf(offset.queueId) })))
    return all.filter(({ offset, end }) => offset + 1 < end)
  }

  return { expectWithin, expectDrained }
}
