import { defaultBus } from '../template/identities.ts'
import { asList, asNumber, asRecord, asText, expectOnly, type Properties } from '../template/read.ts'
import type { Resolved, Stack } from '../template/stack.ts'
import { type EventPattern, parsePattern } from './pattern.ts'
import { parseTransform, type Transform } from './transform.ts'

export type Target = {
  arn: string
  transform: Transform
  /** Queue that gets what could not be delivered. */
  deadLetterArn: string | undefined
}

export type Rule = {
  id: string
  arn: string
  bus: string
  isEnabled: boolean
  pattern: EventPattern | undefined
  everyMs: number | undefined
  targets: Target[]
}

export function readRules(stack: Stack): Rule[] {
  return stack.all('AWS::Events::Rule').map(rule => {
    const { id, arn, properties } = rule
    const known = ['Name', 'Description', 'EventBusName', 'EventPattern', 'ScheduleExpression', 'State', 'Targets']
    expectOnly(properties, id, known)
    const { EventBusName = defaultBus, EventPattern, ScheduleExpression, State = 'ENABLED' } = properties
    return {
      id,
      arn,
      bus: asText(EventBusName, id).replace(/^arn:.*event-bus\//, ''),
      isEnabled: State === 'ENABLED',
      pattern: EventPattern === undefined ? undefined : parsePattern(EventPattern, id),
      everyMs: ScheduleExpression === undefined ? undefined : parseRate(asText(ScheduleExpression, id), id),
      targets: asList(properties.Targets).map(target => readTarget(asRecord(target, id), rule)),
    }
  })
}

function readTarget(target: Properties, { id }: Resolved): Target {
  const known = ['Id', 'Arn', 'Input', 'InputPath', 'InputTransformer', 'RetryPolicy', 'DeadLetterConfig']
  expectOnly(target, `a target of ${id}`, known)
  // EventBridge tries again where a target does not answer. Here they do, or may not be called, which is not tried again.
  expectOnly(asRecord(target.RetryPolicy ?? {}, id), `RetryPolicy of ${id}`, [
    'MaximumRetryAttempts',
    'MaximumEventAgeInSeconds',
  ])
  const { Arn: deadLetterArn } = asRecord(target.DeadLetterConfig ?? {}, id)
  return {
    arn: asText(target.Arn, id),
    transform: parseTransform(target, id),
    deadLetterArn: deadLetterArn === undefined ? undefined : asText(deadLetterArn, id),
  }
}

const unitMs: Record<string, number> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 }

function parseRate(expression: string, id: string): number {
  const [, count, unit = ''] = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(expression) ?? []
  const ms = unitMs[unit]
  if (ms === undefined) throw new Error(`the rehearsal knows schedules by rate(…), not ${expression} of ${id}`)
  return asNumber(count, id) * ms
}
