import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { GroupView, TopicView } from '../../core/protocol/admin.ts'
import { admin, type SubscriptionSettings, setUp } from '../../demo/admin.ts'
import { endProcess, startHostProcess } from '../../demo/processes.ts'
import { checkHistory } from '../checker/check.ts'
import { createHistory, type HistoryEvent } from '../checker/history.ts'
import { mergeHistories } from '../checker/merge.ts'
import { explain } from '../checker/violation.ts'
import { type Child, startChild } from './child.ts'
import { now } from './now.ts'
import type { ConsumerPlan } from './programs/consumer.ts'
import type { PublisherPlan } from './programs/publisher.ts'
import { handledBy } from './reading.ts'
import { until } from './until.ts'

export type ScenePlan = {
  queues: number
  /** Above what a busy machine may keep a consumer waiting, where none is to be given up. */
  sessionTimeoutSeconds: number
  settings?: SubscriptionSettings
}

export type Scene = Awaited<ReturnType<typeof openScene>>

const topicName = 'orders'
const groupName = 'billing'

/** A host with a topic and a group, and the programs that use it: all of them processes. */
export async function openScene({ queues, sessionTimeoutSeconds, settings }: ScenePlan) {
  const folder = await mkdtemp(join(tmpdir(), 'pmq-processes-'))
  const consumers: Child[] = []
  const publishers: Child[] = []
  const children = () => [...consumers, ...publishers]
  const history = createHistory(now)
  let host = await startHostProcess(join(folder, 'data'), sessionTimeoutSeconds)
  const { url } = host
  const killAll = () => [...children().map(child => child.end('SIGKILL')), endProcess(host.child, 'SIGKILL')]
  // Also where the test's own process ends before the test does, or is told to by the runner.
  const leave = () => process.exit(1)
  process.once('exit', killAll).once('SIGTERM', leave)
  const defaults = { threadSize: 4, consumerBatchSize: 5, maxPullTimeSeconds: 1 }
  await setUp(url, topicName, queues, groupName, { ...defaults, ...settings })

  const group = () => admin(url, 'GET', `/groups/${groupName}`) as Promise<GroupView>
  /** How many messages the topic has. */
  async function stored(): Promise<number> {
    const topic = (await admin(url, 'GET', `/topics/${topicName}`)) as TopicView
    return topic.queues.reduce((sum, queue) => sum + queue.nextOffset - 1, 0)
  }

  return {
    folder,
    /** How many the topic has. */
    queues,

    consumer(name: string, plan: Partial<ConsumerPlan> = {}): Child {
      const defaults = { options: {}, workMs: 5, hangsAtFirst: false }
      const child = startChild('consumer', { name, url, groupName, topicName, ...defaults, ...plan })
      consumers.push(child)
      return child
    },

    publisher(name: string, plan: Partial<PublisherPlan> = {}): Child {
      const defaults = { producers: [{ publishTimeoutMs: 60_000 }], requestTimeoutMs: 10_000, messagesPerTick: 5 }
      const child = startChild('publisher', { name, url, topicName, ...defaults, ...plan })
      publishers.push(child)
      return child
    },

    signalHost: (signal: 'SIGSTOP' | 'SIGCONT') => void host.child.kill(signal),

    killHost: () => endProcess(host.child, 'SIGKILL'),

    /** On the same folder and port as before. */
    async startHost() {
      host = await startHostProcess(join(folder, 'data'), sessionTimeoutSeconds, Number(new URL(url).port))
    },

    /** Until the view of the group shows that these consumers, and no others, own the queues. */
    ownedBy: (...owners: Child[]) =>
      until(`the queues are owned by ${owners.map(({ name }) => name).join(', ')}`, async () => {
        const found = new Set((await group()).queues.map(queue => queue.consumerName ?? 'nobody'))
        return found.size === owners.length && owners.every(owner => found.has(serviceName(owner) ?? 'not known yet'))
      }),

    stored,

    /**
     * Lets the publishers end, waits until the group has worked through everything, stops the consumers, and has the
     * checker judge. Returns all that happened.
     */
    async finish(): Promise<HistoryEvent[]> {
      await Promise.all(publishers.map(child => child.end('end')))
      const handled = () => new Set(consumers.flatMap(handledBy))
      // In vain where something is lost; then it is for the checker to say what.
      await until('all is handled', async () => handled().size >= (await stored())).catch(() => undefined)
      history.drained('test', { group: groupName })
      await Promise.all(consumers.map(child => child.end('SIGTERM')))
      const events = mergeHistories([...children().map(child => child.history), history.events])
      assert.deepEqual([...children().flatMap(child => child.defects), explain(checkHistory(events))], [''])
      assert.ok(handled().size > 0)
      assert.equal(handled().size, await stored())
      const behind = (await group()).queues.filter(queue => queue.lag > 0)
      assert.deepEqual(behind, [])
      return events
    },

    async [Symbol.asyncDispose]() {
      process.off('exit', killAll).off('SIGTERM', leave)
      await Promise.all(killAll())
      await rm(folder, { recursive: true })
    },
  }
}

/** The name by which the service knows a consumer. */
const serviceName = (child: Child) => child.told.find(({ type }) => type === 'registered')?.consumerName
