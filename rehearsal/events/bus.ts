import { randomUUID } from 'node:crypto'
import type { Activity } from '../activity.ts'
import type { MovableClock } from '../clock.ts'
import { account } from '../template/account.ts'
import type { Rule, Target } from './rules.ts'

export type BusEvent = { source: string; detailType: string; detail: unknown; resources?: string[] }

export type EventBuses = {
  /** Hands an event to the targets of the rules that it fits. Nobody waits for that. */
  put(bus: string, event: BusEvent): string
  /** Lets a rule's schedule come due now. */
  fire(rule: Rule): void
  stop(): void
}

export type BusDeps = {
  clock: MovableClock
  activity: Activity
  /** Hands `input` to what a target's ARN names, if the policies of that let EventBridge. */
  deliver(rule: Rule, target: Target, input: string): void
  /** Whether schedules come due by the clock; otherwise only when they are fired. */
  runsSchedules: boolean
}

/** EventBridge: rules by pattern and by schedule. */
export function createBuses(rules: Rule[], { clock, activity, deliver, runsSchedules }: BusDeps): EventBuses {
  const stopping = new AbortController()
  const enabled = rules.filter(({ isEnabled }) => isEnabled)

  function handOver(rule: Rule, event: object): void {
    for (const target of rule.targets) activity.during(async () => deliver(rule, target, target.transform(event)))
  }

  function envelope({ source, detailType, detail, resources = [] }: BusEvent) {
    const time = new Date(clock.now()).toISOString().replace(/\.\d+Z$/, 'Z')
    const { id: accountId, region } = account
    return {
      version: '0',
      id: randomUUID(),
      'detail-type': detailType,
      source,
      account: accountId,
      time,
      region,
      resources,
      detail,
    }
  }

  function fire(rule: Rule): void {
    const event = { source: 'aws.events', detailType: 'Scheduled Event', detail: {}, resources: [rule.arn] }
    handOver(rule, envelope(event))
  }

  async function run(rule: Rule, everyMs: number): Promise<void> {
    for (;;) {
      await clock.sleep(everyMs, stopping.signal)
      if (stopping.signal.aborted) return
      fire(rule)
    }
  }

  if (runsSchedules) {
    for (const rule of enabled) if (rule.everyMs !== undefined) void run(rule, rule.everyMs)
  }

  return {
    put(bus, event) {
      const whole = envelope(event)
      for (const rule of enabled) if (rule.bus === bus && rule.pattern?.(whole)) handOver(rule, whole)
      return whole.id
    },
    fire,
    stop: () => stopping.abort(),
  }
}
