import { findTopicWith } from '../../../core/client/find.ts'
import type { Core } from '../../../core/core.ts'
import type { Subscription, Topic } from '../../../core/model.ts'
import type { Notice, QueueOfTopic } from '../../../core/notices.ts'
import { type Decided, readTarget, stepTarget } from '../../../core/notify/change-target.ts'
import { dueOf } from '../../../core/notify/due.ts'
import { pushEndStep, pushStep, pushWakeStep } from '../../../core/notify/push-steps.ts'
import { endStep, hintStep, type Step, wakeStep } from '../../../core/notify/steps.ts'
import type { Target, TargetRef } from '../../../core/notify/target.ts'
import type { createPush, Post } from '../push.ts'
import { createAlarmSender } from './alarm-sender.ts'
import { all } from './all.ts'
import type { createCallbacks } from './callbacks.ts'
import { createDeliveries, type Sent } from './deliveries.ts'
import { tellDisabled } from './disabled.ts'
import type { Job, Jobs } from './jobs.ts'
import { type Reach, type Reached, requestTimeoutMs } from './reach.ts'

export type NotifierDeps = {
  jobs: Jobs
  reach: Reach
  callbacks: ReturnType<typeof createCallbacks>
  /** Makes runs of pushes, which tell of each request. */
  push: (onPost: (post: Post) => void) => ReturnType<typeof createPush>
}

/** Acts on what the bus says and on jobs, of which each may come twice. `leftMs`: how long it may take. */
export type Notifier = {
  hear(notice: Notice, leftMs: number): Promise<void>
  run(job: Job, leftMs: number): Promise<void>
}

/** A run of a push goes on for so long; whoever is behind it may have another one. */
const longestPushMs = 60_000
/** What a run leaves to write down how it went. */
const pushReserveMs = 5_000
const shortestPushMs = 5_000

/** Makes what hints groups' targets at their queues, and hands messages on to those that want them. */
export function createNotifier(core: Core, deps: NotifierDeps): Notifier {
  const { jobs, reach, callbacks } = deps
  const deliveries = createDeliveries(core, reach)
  const alarms = createAlarmSender(core, jobs, deliveries)
  const newDeliveryId = () => `msg_${core.newId()}`

  async function queueAppended(queue: QueueOfTopic, leftMs: number): Promise<void> {
    const snapshot = await findTopicWith(core, queue.topicName, ({ notifies }) => notifies.length > 0)
    if (!snapshot) return
    await all(snapshot.notifies, async groupName => {
      const [subscriptions = [], targets] = await Promise.all([
        core.subscriptions.get(groupName),
        core.store.readTargets({ groupName }),
      ])
      const subscription = subscriptions.find(({ topicName }) => topicName === originOf(snapshot.topic))
      if (!subscription) return
      await all(targets, target => {
        if (target.delivers === 'messages') return pushOn(target, [queue.queueId], leftMs, pushStep)
        return hint(target, queue, snapshot.topic, subscription)
      })
    })
  }

  async function hint(target: Target, queue: QueueOfTopic, topic: Topic, subscription: Subscription): Promise<void> {
    const decided = await stepTarget(core, target, (each, nowMs) =>
      hintStep(each, dueOf(queue, topic, subscription, nowMs), nowMs, newDeliveryId),
    )
    await follow(decided)
  }

  /** Sees to what was decided. The job comes first: whoever dies while he sends has left word. */
  async function follow(decided: Decided<Step> | undefined): Promise<void> {
    if (!decided) return
    const { step, target } = decided
    if (step.wakeAtMs !== undefined) await scheduleWake(target, step.wakeAtMs)
    if (step.send) await deliver(target, step.send)
  }

  async function scheduleWake({ owner, name }: TargetRef, wakeAtMs: number): Promise<void> {
    await jobs.schedule({ type: 'Wake', target: { owner, name }, wakeAtMs }, wakeAtMs - core.clock.now())
  }

  async function deliver(target: Target, delivery: NonNullable<Step['send']>): Promise<void> {
    const { deliveryId, queueIds } = delivery
    const reached = await sendHint(target, deliveryId, queueIds)
    await ended(target, (each, nowMs) => endStep(each, delivery, reached, nowMs))
  }

  async function ended(target: Target, decide: (target: Target, nowMs: number) => Step): Promise<void> {
    // As it was when the delivery began; whoever has changed it meanwhile makes the store answer with what is there.
    const decided = await stepTarget(core, target, decide)
    if (decided?.step.next?.disabledBy === 'failures') await tellDisabled(core, decided.target)
    await follow(decided)
  }

  async function sendHint(target: Target, deliveryId: string, queueIds: number[]): Promise<Sent> {
    const { owner } = target
    if (owner === 'alarms') throw new TypeError('alarms have no queues')
    const { groupName } = owner
    if (target.kind === 'callback') return callBack(target, groupName, deliveryId, queueIds)
    const msgNotifyDtos = queueIds.map(queueId => ({ queueId, consumerGroupName: groupName }))
    const body = JSON.stringify({ msgNotifyDtos })
    return deliveries.send(target, { what: 'hint', queueIds }, { deliveryId, body, timeoutMs: requestTimeoutMs })
  }

  /** Clients come and go, and none of them is the target: what fails is told, and repeated by nobody. */
  async function callBack(target: Target, groupName: string, deliveryId: string, queueIds: number[]): Promise<Reached> {
    const snapshot = await core.snapshots.get(groupName, 0)
    const atMs = core.clock.now()
    const failures = snapshot ? await callbacks(snapshot, queueIds, deliveryId, requestTimeoutMs) : []
    await all(failures, failure => deliveries.recordCallback(target, { deliveryId, atMs, queueIds }, failure))
    return { outcome: 'succeeded', durationMs: 0 }
  }

  async function pushOn(
    read: Target,
    queueIds: number[],
    leftMs: number,
    decide: (target: Target, nowMs: number) => Step & { isDue: boolean },
  ): Promise<void> {
    const decided = await stepTarget(core, read, decide)
    await follow(decided)
    if (!decided?.step.isDue) return
    const { target } = decided
    const timeLimitMs = Math.min(longestPushMs, leftMs - pushReserveMs)
    if (timeLimitMs < shortestPushMs) throw new Error('there is too little time left to begin a push')
    const recording: Promise<void>[] = []
    const run = deps.push(post => recording.push(deliveries.recordPost(target, post)))
    const report = await run(target, queueIds, timeLimitMs)
    // What was handed on is told of, whatever comes next.
    const recorded = await Promise.allSettled(recording)
    await ended(target, (each, nowMs) => pushEndStep(each, report, nowMs))
    for (const end of recorded) if (end.status === 'rejected') throw end.reason
  }

  async function test(ref: TargetRef, deliveryId: string): Promise<void> {
    const target = await readTarget(core, ref)
    if (!target) return
    const body = JSON.stringify(testBody(target))
    const reached = await deliveries.send(target, { what: 'test' }, { deliveryId, body, timeoutMs: requestTimeoutMs })
    // One that has failed is no failure of what it is for.
    if (reached.outcome === 'succeeded') await ended(target, (each, nowMs) => endStep(each, undefined, reached, nowMs))
  }

  return {
    async hear(notice, leftMs) {
      switch (notice.type) {
        case 'QueueAppended':
        case 'QueueBusy':
          return queueAppended(notice, leftMs)
        case 'TargetTest':
          return test(notice.target, notice.deliveryId)
        case 'AlarmRaised':
        case 'AlarmCleared':
          return alarms.tell(notice)
      }
    },
    async run(job, leftMs) {
      const target = await readTarget(core, job.target)
      if (!target) return
      if (job.type === 'Alarm') return alarms.send(target, job)
      if (target.delivers === 'messages')
        return pushOn(target, [], leftMs, (each, nowMs) => pushWakeStep(each, job.wakeAtMs, nowMs))
      await follow(await stepTarget(core, target, (each, nowMs) => wakeStep(each, job.wakeAtMs, nowMs, newDeliveryId)))
    },
  }
}

const testBody = ({ owner, delivers }: Target) => {
  if (owner === 'alarms') return { type: 'Test', text: 'A test of this target: nothing is the matter' }
  return delivers === 'messages' ? { msgs: [] } : { msgNotifyDtos: [] }
}

const originOf = ({ name, failOf }: Topic) => failOf?.topicName ?? name
