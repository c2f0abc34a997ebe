import type { Access } from '../iam/access.ts'
import { account } from '../template/account.ts'
import { asTexts } from '../template/read.ts'
import type { Stack } from '../template/stack.ts'

/** Asks whether the alarms of the template may call whom they should call. They look at metrics, which there are none of here. */
export function tryAlarms(stack: Stack, access: Access): void {
  for (const { id, arn, properties } of stack.all('AWS::CloudWatch::Alarm')) {
    const caller = { name: `the alarm ${id}`, principal: { service: 'cloudwatch.amazonaws.com' } }
    const actions = ['AlarmActions', 'OKActions', 'InsufficientDataActions'].flatMap(name =>
      asTexts(properties[name], id),
    )
    for (const topicArn of new Set(actions)) {
      if (!topicArn.includes(':sns:'))
        throw new Error(`the rehearsal knows alarms that publish on a topic, not ${topicArn} of ${id}`)
      access.ask(caller, 'sns:Publish', topicArn, { 'aws:sourcearn': [arn], 'aws:sourceowner': [account.id] })
    }
  }
}
