import middy from '@middy/core'
import type { EventBridgeEvent, SQSBatchResponse, SQSEvent } from 'aws-lambda'
import type { Notice } from '../../../core/notices.ts'
import { logError } from '../log.ts'
import type { Job } from './jobs.ts'
import type { Notifier } from './notifier.ts'

type BusEvent = EventBridgeEvent<Notice['type'], Omit<Notice, 'type'>>
export type NotifyEvent = BusEvent | SQSEvent

/**
 * A Lambda handler for what the bus says, and for the queue of jobs, to which a rule brings what is to be heard later. It may
 * be invoked twice with the same event. What fails is tried again by Lambda, or comes back from the queue.
 */
export function notifyHandler(notifier: Notifier) {
  return middy<NotifyEvent, SQSBatchResponse | undefined>().handler(async (event, context) => {
    const leftMs = () => context.getRemainingTimeInMillis()
    if (!('Records' in event)) {
      await notifier.hear(noticeOf(event), leftMs())
      return undefined
    }
    const failures = await Promise.all(
      event.Records.map(async ({ messageId, body }) => {
        try {
          const told: Job | BusEvent = JSON.parse(body)
          if ('detail-type' in told) await notifier.hear(noticeOf(told), leftMs())
          else await notifier.run(told, leftMs())
          return []
        } catch (error) {
          logError('a job of the notify function failed', { messageId }, error)
          return [{ itemIdentifier: messageId }]
        }
      }),
    )
    return { batchItemFailures: failures.flat() }
  })
}

const noticeOf = ({ 'detail-type': type, detail }: BusEvent) => ({ type, ...detail }) as Notice
