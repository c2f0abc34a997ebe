import { setTimeout as sleep } from 'node:timers/promises'
import type { Consumer, ConsumerOptions, HandlerContext, Message } from 'pmq-sdk'
import type { Program } from './program.ts'

/** A consumer whose handler takes its time, and fails now and then in each of the ways in which it can. */
export function makeConsumer(program: Program, groupName: string, options: Partial<ConsumerOptions> = {}): Consumer {
  const { client, name, record, history, topicName } = program

  async function handle(messages: readonly Message[], { signal }: HandlerContext): Promise<void> {
    const each = messages.map(({ queueId, offset, body: value }) => ({ group: groupName, queueId, offset, value }))
    for (const handled of each) history.handleStart(name, handled)
    // Some look at their signal, others do not.
    const isAttentive = Math.random() < 0.5
    await sleep(Math.random() * longestWorkMs, undefined, isAttentive ? { signal } : {})
    const isFailed = Math.random() < failures
    for (const handled of each) history.handleEnd(name, handled, isFailed ? 'failed' : 'ok')
    if (isFailed) throw thrown[Math.floor(Math.random() * thrown.length)]
  }

  return client.consumer({
    groupName,
    topics: { [topicName]: handle },
    onEvent(event) {
      record.consumer.onEvent(event)
      program.onEvent(event)
    },
    heartbeatIntervalMs: 1_000,
    stopTimeoutMs: 2_000,
    revokeTimeoutMs: 5_000,
    ...options,
  })
}

const longestWorkMs = 20
const failures = 0.01
const thrown = [new Error('the handler failed'), undefined, 'not an error', null]
