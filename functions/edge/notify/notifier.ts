import { createHash } from 'node:crypto'
import { alarmId } from '../../../core/alarms/alarm.ts'
import { readAlarms } from '../../../core/alarms/alarms.ts'
import { raiseDisabled } from '../../../core/alarms/judge-targets.ts'
import { findTopicWith } from '../../../core/client/find.ts'
import type { Core } from '../../../core/core.ts'
import type { Subscription, Topic } from '../../../core/model.ts'
import type { Notice, QueueOfTopic } from '../../../core/notices.ts'
import { alignNotifies } from '../../../core/notify/align.ts'
import { type Decided, readTarget, stepTarget } from '../../../core/notify/change-target.ts'
import { dueOf } from '../../../core/notify/due.ts'
import { pushEndStep, pushStep, pushWakeStep } from '../../../core/notify/push-steps.ts'
import { disabledAfterMs, endStep, hintStep, pauseMs, type Step, wakeStep } from '../../../core/notify/steps.ts'
import type { Delivery, Target, TargetRef } from '../../../core/notify/target.ts'
import type { createPush, Post } from '../push.ts'
import { all } from './all.ts'
import type { createCallbacks } from './callbacks.ts'
import type { AlarmNotice, AlarmSending, Job, Jobs } from './jobs.ts'
import { keepAnswer } from './keep-answer.ts'
import type { Reach, Reached } from './reach.ts'

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

/** What PMQ gives its clients for a hint. */
const hintTimeoutMs = 5_000
/** A run of a push goes on for so long; whoever is behind it may have another one. */
const longestPushMs = 60_000
/** What a run leaves to write down how it went. */
const pushReserveMs = 5_000
const shortestPushMs = 5_000

/** Makes what hints groups' targets at their queues, and hands messages on to those that want them. */
export function createNotifier(core: Core, deps: NotifierDeps): Notifier {
  const { jobs, reach, callbacks } = deps
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
    if (decided?.step.next?.disabledBy === 'failures') await tellDisabled(decided.target)
    await follow(decided)
  }

  async function tellDisabled(target: Target): Promise<void> {
    await raiseDisabled(core, target, await readAlarms(core))
    if (target.owner !== 'alarms') await alignNotifies(core, target.owner.groupName)
  }

  /** Each target of alarms hears of each change. What fails is repeated by a job of its own, for a day. */
  async function tellAlarm(told: AlarmNotice): Promise<void> {
    const targets = await core.store.readTargets('alarms')
    const deliveryId = alarmDeliveryId(told)
    await all(targets, target => sendAlarm(target, { told, deliveryId, firstAtMs: core.clock.now(), tries: 0 }))
  }

  async function sendAlarm(target: Target, sending: AlarmSending): Promise<void> {
    if (target.state.isDisabled) return
    const { told, deliveryId, firstAtMs, tries } = sending
    const { type, alarm, text } = told
    const body = JSON.stringify({ type, text, ...alarm })
    const reached = await sendOne(target, { what: 'alarm' }, { deliveryId, body, timeoutMs: hintTimeoutMs })
    const step = await stepTarget(core, target, (each, nowMs) => endStep(each, undefined, reached, nowMs))
    if (step?.step.next?.disabledBy === 'failures') await tellDisabled(step.target)
    if (reached.outcome === 'succeeded' || !step || step.target.state.isDisabled) return
    const nowMs = core.clock.now()
    if (nowMs - firstAtMs >= disabledAfterMs) return
    const { owner, name } = target
    const delayMs = Math.max(pauseMs(tries), reached.retryAfterMs ?? 0)
    await jobs.schedule({ type: 'Alarm', target: { owner, name }, ...sending, tries: tries + 1 }, delayMs)
  }

  async function sendHint(
    target: Target,
    deliveryId: string,
    queueIds: number[],
  ): Promise<Reached & { isGone?: boolean }> {
    const { owner } = target
    if (owner === 'alarms') throw new TypeError('alarms have no queues')
    const { groupName } = owner
    if (target.kind === 'callback') return callBack(target, groupName, deliveryId, queueIds)
    const msgNotifyDtos = queueIds.map(queueId => ({ queueId, consumerGroupName: groupName }))
    const body = JSON.stringify({ msgNotifyDtos })
    return sendOne(target, { what: 'hint', queueIds }, { deliveryId, body, timeoutMs: hintTimeoutMs })
  }

  async function sendOne(
    target: Target,
    about: Pick<Delivery, 'what' | 'queueIds'>,
    request: Parameters<Reach>[1],
  ): Promise<Reached & { isGone?: boolean }> {
    const atMs = core.clock.now()
    const reached = await reach(target, request)
    await record(target, { deliveryId: request.deliveryId, atMs, ...about, ...withoutRetry(reached) })
    return { ...reached, ...(reached.status === 410 && { isGone: true }) }
  }

  /** Clients come and go, and none of them is the target: what fails is told, and repeated by nobody. */
  async function callBack(target: Target, groupName: string, deliveryId: string, queueIds: number[]): Promise<Reached> {
    const snapshot = await core.snapshots.get(groupName, 0)
    const atMs = core.clock.now()
    const failures = snapshot ? await callbacks(snapshot, queueIds, deliveryId, hintTimeoutMs) : []
    await all(failures, ({ url, error, ...reached }) => {
      const failure = `${url}: ${error}`
      return record(target, { deliveryId, atMs, what: 'hint', queueIds, ...withoutRetry(reached), error: failure })
    })
    return { outcome: 'succeeded', durationMs: 0 }
  }

  async function record({ owner, name }: TargetRef, delivery: Delivery): Promise<void> {
    await core.store.addDelivery({ owner, name }, delivery)
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
    const run = deps.push(post => recording.push(record(target, deliveryOf(post))))
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
    const reached = await sendOne(target, { what: 'test' }, { deliveryId, body, timeoutMs: hintTimeoutMs })
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
          return tellAlarm(notice)
      }
    },
    async run(job, leftMs) {
      const target = await readTarget(core, job.target)
      if (!target) return
      if (job.type === 'Alarm') return sendAlarm(target, job)
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

/** The same for whoever tells of it again. */
const alarmDeliveryId = ({ type, alarm }: AlarmNotice) =>
  `alarm_${createHash('sha256')
    .update(JSON.stringify([type, alarmId(alarm), alarm.raisedAtMs]))
    .digest('base64url')
    .slice(0, 24)}`

const originOf = ({ name, failOf }: Topic) => failOf?.topicName ?? name

const withoutRetry = ({ retryAfterMs: _asked, answer, ...reached }: Reached) => ({
  ...reached,
  ...(answer && { answer: keepAnswer(answer) }),
})

function deliveryOf({ deliveryId, queueId, messages, startedAtMs, durationMs, outcome, ...post }: Post): Delivery {
  const { status, error, answer } = post
  return {
    deliveryId,
    atMs: startedAtMs,
    durationMs,
    outcome: outcome === 'done' ? 'succeeded' : 'failed',
    what: 'messages',
    queueIds: [queueId],
    messages,
    ...(status !== undefined && { status }),
    ...(error !== undefined && { error }),
    ...(answer && { answer: keepAnswer(answer) }),
  }
}
