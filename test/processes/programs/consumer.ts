import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ConsumerOptions, createClient, type HandlerContext, type Message } from 'pmq-sdk'
import type { PollResponse } from '../../../core/protocol/membership.ts'
import type { Transport } from '../../../sdk/src/transport.ts'
import { createRecorder, recordConsumer } from '../../simulation/programs/recorder.ts'
import { createReporter } from './reporter.ts'

/** A consumer as an application runs it, of which all is recorded. SIGTERM stops it in order. */
export type ConsumerPlan = {
  name: string
  url: string
  groupName: string
  topicName: string
  options: Partial<ConsumerOptions>
  /** The longest that a handler call takes. */
  workMs: number
  /** The first message of the first queue that has one is worked on without an end. */
  hangsAtFirst: boolean
}

/** Until this file is there, the next handler call keeps the whole process from doing anything else. */
export type BlockOrder = { blockUntil: string }

const plan: ConsumerPlan = JSON.parse(process.argv[2] ?? '')
const { name, groupName: group, topicName } = plan
const reporter = createReporter()
const { history, onDefect, flush } = reporter
const { call, close } = reporter.connect(plan.url)
let blockUntil: string | undefined
let isHanging = false

process.on('message', (order: BlockOrder) => {
  blockUntil = order.blockUntil
})

const queueIds = new Map<number, number>()
/** Commits name a queue by an id that only assignments explain. */
const learning: Transport = async (path, request, options) => {
  const answer = await call(path, request, options)
  for (const { queues } of Object.values((answer as Partial<PollResponse>).consumerGroups ?? {})) {
    for (const { queueOffsetId, queueId } of Object.values(queues)) queueIds.set(queueOffsetId, queueId)
  }
  return answer
}
const { transport, onEvent } = recordConsumer(createRecorder(history, queueIds, onDefect), name, learning)

async function handle(messages: readonly Message[], { signal }: HandlerContext): Promise<void> {
  for (const { queueId, offset, body: value } of messages) {
    history.handleStart(name, { group, queueId, offset, value })
  }
  if (plan.hangsAtFirst && !isHanging && messages[0]?.offset === 1) {
    isHanging = true
    await new Promise(() => {})
  }
  if (blockUntil !== undefined) await block(blockUntil)
  await sleep(Math.random() * plan.workMs, undefined, { signal })
  for (const { queueId, offset, body: value } of messages) {
    history.handleEnd(name, { group, queueId, offset, value }, 'ok')
  }
  // A commit may follow as soon as this returns, and then has to be found justified.
  await flush()
}

async function block(file: string): Promise<void> {
  blockUntil = undefined
  reporter.report({ state: 'blocked' })
  await flush()
  const cell = new Int32Array(new SharedArrayBuffer(4))
  while (!existsSync(file)) Atomics.wait(cell, 0, 0, 10)
}

const client = createClient({
  transport,
  onEvent(event) {
    onEvent(event)
    reporter.onEvent(event)
  },
})
const consumer = client.consumer({ groupName: group, topics: { [topicName]: handle }, ...plan.options })
process.once('SIGTERM', async () => {
  await client.close()
  close()
  await reporter.end()
})
await consumer.start()
