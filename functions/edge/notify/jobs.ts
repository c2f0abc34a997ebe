import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import type { Notice } from '../../../core/notices.ts'
import type { TargetRef } from '../../../core/notify/target.ts'

/** What is to be done about a target at a time. It names things, and holds nothing of theirs. */
export type Job =
  | { type: 'Wake'; target: TargetRef; wakeAtMs: number }
  | ({ type: 'Alarm'; target: TargetRef } & AlarmSending)

export type AlarmNotice = Extract<Notice, { type: 'AlarmRaised' | 'AlarmCleared' }>

/** An alarm on its way to one target: since when it is tried, and how often it was. */
export type AlarmSending = { told: AlarmNotice; deliveryId: string; firstAtMs: number; tries: number }

/** Carries jobs to whoever does them. Each may come twice. */
export type Jobs = {
  /** In so many milliseconds, at most a quarter of an hour: a job that is due later is given back. */
  schedule(job: Job, delayMs: number): Promise<void>
}

/** What SQS delays a message by, at most. */
const maxDelaySeconds = 900

/** Jobs as delayed messages of an SQS queue. */
export function createSqsJobs(queueUrl: string, client: SQSClient = new SQSClient({})): Jobs {
  return {
    async schedule(job, delayMs) {
      const DelaySeconds = Math.min(maxDelaySeconds, Math.max(0, Math.ceil(delayMs / 1000)))
      await client.send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: JSON.stringify(job), DelaySeconds }))
    },
  }
}
