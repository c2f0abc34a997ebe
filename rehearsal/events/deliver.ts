import type { Access } from '../iam/access.ts'
import type { Asynchronous } from '../lambda/asynchronous.ts'
import type { RunningFunction } from '../lambda/function.ts'
import type { LocalQueue } from '../sqs/queue.ts'
import type { BusDeps } from './bus.ts'
import type { Rule, Target } from './rules.ts'

export type DeliveryDeps = {
  access: Access
  functions: ReadonlyMap<string, RunningFunction>
  queues: ReadonlyMap<string, LocalQueue>
  topics: ReadonlyMap<string, string[]>
  asynchronous: Asynchronous
}

/** Hands what a rule says to its targets, as far as their policies let EventBridge; the rest goes to the dead letters. */
export function createDelivery({ access, functions, queues, topics, asynchronous }: DeliveryDeps): BusDeps['deliver'] {
  return (rule, { arn, deadLetterArn }, input) => {
    if (!send(rule, arn, input) && deadLetterArn !== undefined) send(rule, deadLetterArn, input)
  }

  /** False: EventBridge may not. */
  function send(rule: Rule, arn: string, input: string): boolean {
    const caller = { name: `EventBridge for ${rule.id}`, principal: { service: 'events.amazonaws.com' } }
    const may = (action: string) =>
      access.ask(caller, action, arn, { 'aws:sourcearn': [rule.arn] }).refusal === undefined

    const lambda = functions.get(arn.replace(/^.*:function:/, ''))
    if (lambda) {
      if (!may('lambda:InvokeFunction')) return false
      asynchronous.invoke(lambda, input)
      return true
    }
    const queue = queues.get(arn)
    if (queue) {
      if (!may('sqs:SendMessage')) return false
      queue.send(input)
      return true
    }
    if (!may('sns:Publish')) return false
    topics.get(arn)?.push(input)
    return true
  }
}

/** Fails where a rule leads to something that is not there. */
export function expectTargets(
  rules: Rule[],
  { functions, queues, topics }: Omit<DeliveryDeps, 'access' | 'asynchronous'>,
): void {
  const isThere = ({ arn }: Pick<Target, 'arn'>) =>
    functions.has(arn.replace(/^.*:function:/, '')) || queues.has(arn) || topics.has(arn)
  for (const { id, targets } of rules) {
    for (const target of targets) {
      if (!isThere(target))
        throw new Error(
          `${id} leads to ${target.arn}; the rehearsal knows functions, queues and topics of the template`,
        )
      const { deadLetterArn } = target
      if (deadLetterArn !== undefined && !queues.has(deadLetterArn))
        throw new Error(`${id} has no queue ${deadLetterArn}`)
    }
  }
}
