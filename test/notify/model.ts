import { defaultSubscription } from '../../core/admin/subscriptions.ts'
import type { Subscription, Topic } from '../../core/model.ts'
import { dueOf } from '../../core/notify/due.ts'
import { endStep, hintStep, type Step, wakeStep } from '../../core/notify/steps.ts'
import { freshState, type Target } from '../../core/notify/target.ts'
import { seededRandom } from '../support/random.ts'

/** A message that was appended, and when it is due. */
export type Appended = { queueId: number; atMs: number; dueAtMs: number }
export type Sent = { deliveryId: string; queueIds: number[]; atMs: number; endedAtMs: number; isGood: boolean }

export type Story = { appended: Appended[]; sent: Sent[]; target: Target; endedAtMs: number }

export type Weather = {
  /** How often the target fails, of 1. */
  failing: number
  /** How often a container dies while it sends. */
  dying: number
  /** How often a job or an event comes twice. */
  repeated: number
  minGapMs: number
  delaySeconds: number
}

const topic: Topic = { name: 'orders', topicId: 1, retentionMs: 1, createdAtMs: 0 }

/**
 * One target and containers that hear of its queues, step by step: each reads, decides and replaces, and others come in
 * between. Time passes by events. What was heard by a container that died is heard again, as Lambda and SQS do it.
 */
export function play(seed: number, weather: Weather): Story {
  const random = seededRandom(seed)
  const chance = (of: number) => random() < of
  const subscription: Subscription = {
    ...defaultSubscription,
    groupName: 'g',
    topicName: 'orders',
    topicId: 1,
    delayProcessTimeSeconds: weather.delaySeconds,
  }
  let target: Target = {
    owner: { groupName: 'g' },
    name: 't',
    kind: 'webhook',
    delivers: 'hints',
    minGapMs: weather.minGapMs,
    secrets: [],
    createdAtMs: 0,
    revision: 1,
    state: freshState,
  }
  const appended: Appended[] = []
  const sent: Sent[] = []
  const events: { atMs: number; act: () => void }[] = []
  const at = (atMs: number, act: () => void) => events.push({ atMs, act })
  let nowMs = 1_700_000_000_000
  let ids = 0
  const newId = () => `d${++ids}`

  /** Reads now and writes a little later, again if somebody was faster. */
  function decide(by: (target: Target, nowMs: number) => Step, then: (step: Step) => void) {
    const read = target
    const step = by(read, nowMs)
    const next = step.next
    if (!next) return then(step)
    at(nowMs + random() * 20, () => {
      if (target.revision !== read.revision) return decide(by, then)
      target = { ...read, state: next, revision: read.revision + 1 }
      then(step)
    })
  }

  function follow(step: Step, again: () => void) {
    if (step.wakeAtMs !== undefined) schedule(step.wakeAtMs)
    if (step.send) send(step.send, again)
  }

  function schedule(wakeAtMs: number) {
    const delayMs = Math.ceil(Math.min(900_000, Math.max(0, wakeAtMs - nowMs)) / 1000) * 1000
    const come = () =>
      decide(
        (each, now) => wakeStep(each, wakeAtMs, now, newId),
        step => follow(step, comeAgain),
      )
    const comeAgain = () => at(nowMs + 120_000, come)
    at(nowMs + delayMs + random() * 50, come)
    if (chance(weather.repeated)) at(nowMs + delayMs + random() * 5_000, come)
  }

  function send(delivery: NonNullable<Step['send']>, again: () => void) {
    const record = { ...delivery, atMs: nowMs, endedAtMs: Number.POSITIVE_INFINITY, isGood: false }
    // Half of those who die have not begun to send.
    const dies = chance(weather.dying)
    if (dies && chance(0.5)) return again()
    sent.push(record)
    if (dies) return again()
    at(nowMs + random() * 5_000, () => {
      record.endedAtMs = nowMs
      record.isGood = !chance(weather.failing)
      const outcome = record.isGood ? ('succeeded' as const) : ('failed' as const)
      decide(
        (each, now) => endStep(each, delivery, { outcome }, now),
        step => follow(step, () => undefined),
      )
    })
  }

  function append(queueId: number) {
    appended.push({ queueId, atMs: nowMs, dueAtMs: nowMs + weather.delaySeconds * 1000 })
    const hear = () =>
      decide(
        (each, now) => hintStep(each, dueOf({ topicName: 'orders', queueId }, topic, subscription, now), now, newId),
        step => follow(step, hearAgain),
      )
    const hearAgain = () => at(nowMs + 60_000, hear)
    at(nowMs + random() * 100, hear)
    if (chance(weather.repeated)) at(nowMs + random() * 60_000, hear)
  }

  for (let i = 0, atMs = nowMs; i < 60; i++) {
    atMs += chance(0.1) ? random() * 60_000 : random() * 150
    const queueId = 1 + Math.floor(random() * 4)
    at(atMs, () => append(queueId))
  }
  for (let steps = 0; events.length > 0; steps++) {
    if (steps > 20_000) throw new Error('it does not come to rest')
    const next = events.reduce((first, each) => (each.atMs < first.atMs ? each : first))
    events.splice(events.indexOf(next), 1)
    nowMs = Math.max(nowMs, next.atMs)
    next.act()
  }
  return { appended, sent, target, endedAtMs: nowMs }
}
