import type { FailedMessage } from '../../core/failed/records.ts'
import { failTopicName } from '../../core/group/fail-topics.ts'
import { decodeText, parseMessages } from '../../core/log/encoding.ts'
import type { BatchMessage } from '../../core/protocol/pull.ts'
import { groupOf } from '../checker/facts.ts'
import type { EventOf, HistoryEvent } from '../checker/history.ts'
import type { Finding } from './judge.ts'
import type { GroupPlan, Plan } from './plan.ts'
import { bodyOf } from './programs/recorder.ts'
import type { World } from './world/world.ts'

/** A message as it lies in a fail topic; `place` is `queue/offset`, and `id` that of its oldest copy there. */
type Letter = { place: string; id: string; from: string | undefined; retryCount: number; body: string }

type Scene = { group: GroupPlan; topicName: string; records: Map<string, FailedMessage>; letters: Map<string, Letter> }

/**
 * P7. Whatever has happened, the records of failed messages tell what has become of them: each failure that a consumer was
 * told to be stored is recorded, as is each success; a record is where its message is, and says `exhausted` of a dead letter
 * and of nothing else. What the copies have to do with each other is read from where each was sent from, and not from what
 * the service notes of it.
 */
export async function judgeRecords(world: World, plan: Plan, isDrained: boolean): Promise<Finding[]> {
  const findings: Finding[] = []
  const groups = plan.groups.filter(({ failures }) => failures !== undefined)
  const tell = (texts: readonly string[]) =>
    findings.push(...texts.slice(0, 3).map(text => ({ property: 'records', text: `records: ${text}` })))
  for (const group of groups) {
    const scenes: Scene[] = []
    for (const topicName of group.topicNames) {
      const scene = { group, topicName, ...(await readAll(world, group.name, topicName)) }
      scenes.push(scene)
      tell([
        ...missingFailures(world, scene),
        ...missingSuccesses(world, scene),
        ...wrongRecords(world, plan, scene),
        ...(isDrained && !plan.operator && !group.failures?.isChanged ? unsettled(scene) : []),
      ])
    }
    tell([...wrongAttempts(world, plan, group, scenes)])
  }
  return findings
}

/** Each failure that was taken has a record, which tells of it or of something later. */
function* missingFailures({ history }: World, { group, topicName, records, letters }: Scene): Generator<string> {
  const failTopic = failTopicName(group.name, topicName)
  const copies = Map.groupBy(letters.values(), ({ from, retryCount }) => `${from} ${retryCount}`)
  for (const event of history.events) {
    if (event.type !== 'publish-stored') continue
    const { topic, messages } = history.events[event.op] as EventOf<'publish-invoke'>
    if (topic !== failTopic) continue
    for (const { failureOf } of messages) {
      if (!failureOf) continue
      const { queueId, offset, retryCount } = failureOf
      const sent = `${queueId}/${offset}`
      const found = (copies.get(`${sent} ${retryCount}`) ?? []).map(({ id }) => records.get(id))
      if (found.some(record => record && record.retryCount >= retryCount)) continue
      yield `${event.client} was told that failure ${retryCount} of ${sent} is taken, and there is no record of it`
    }
  }
}

/** Each success that was taken is recorded, unless something later has become of the message. */
function* missingSuccesses({ recorder }: World, { records, letters }: Scene): Generator<string> {
  for (const place of recorder.confirmed) {
    const letter = letters.get(place)
    if (!letter) continue
    const record = records.get(letter.id)
    const isLater = record && record.retryCount > letter.retryCount
    if (isLater || (record?.retryCount === letter.retryCount && record.state === 'succeeded')) continue
    yield `"${letter.body}" at ${place} was handled, as was told and taken, and its record says ${record?.state}`
  }
}

function* wrongRecords({ history, recorder }: World, plan: Plan, scene: Scene): Generator<string> {
  const { group, topicName, records, letters } = scene
  const counts = history.events.flatMap(event =>
    event.type === 'retry-rules' && event.group === group.name && event.topic === topicName ? [event.retryCount] : [],
  )
  const [least, most] = [Math.min(...counts), Math.max(...counts)]
  const done = new Set(
    history.events.flatMap(event =>
      event.type === 'handle-end' && event.outcome === 'ok' ? [`${event.queueId}/${event.offset}`] : [],
    ),
  )
  for (const [id, { place, state, retryCount }] of records) {
    const at = `${place.queueId}/${place.offset}`
    const what = `the record ${id} says ${state}, ${retryCount} failures, at ${at}`
    const letter = letters.get(at)
    if (letter?.id !== id || letter.retryCount !== retryCount) yield `${what}, where there is ${JSON.stringify(letter)}`
    // Without a subscription nobody handles it.
    if (state === 'exhausted' && retryCount <= least && !plan.operator?.resubscribes) {
      yield `${what}, and ${least} retries were to follow`
    }
    if (state === 'retrying' && retryCount > most) yield `${what}, which is a dead letter by ${most} retries`
    if (state === 'succeeded' && !done.has(at)) yield `${what}, and nobody has handled it`
    if (recorder.failTopicOf(place.queueId) !== failTopicName(group.name, topicName)) yield `${what}, in another topic`
  }
}

/**
 * Without faults exactly as often as it was handled in vain; with them, some of that may never have been told. A suspect
 * fails without a call that has. Of all topics of a group together, since what is handled in vain is known by the group.
 */
function* wrongAttempts({ history }: World, plan: Plan, group: GroupPlan, scenes: readonly Scene[]): Generator<string> {
  const failed = countFailures(history.events, group.name)
  const attempts = new Map<string, number>()
  for (const { records, letters } of scenes) {
    for (const { place, attempts: count } of records.values()) {
      const body = letters.get(`${place.queueId}/${place.offset}`)?.body ?? ''
      attempts.set(body, (attempts.get(body) ?? 0) + count)
      if (count <= (failed.get(body) ?? 0)) continue
      yield `"${body}" has failed ${failed.get(body) ?? 0} times, and its record says ${count}`
    }
  }
  // In place each owner of a queue begins to count anew, and settings that change may count what has happened already.
  const { retryInPlace } = group.failures?.settings ?? {}
  if (!plan.isClean || plan.operator || group.failures?.isChanged || retryInPlace) return
  for (const [body, times] of failed) {
    if (attempts.get(body) === times) continue
    yield `"${body}" has failed ${times} times, and its records say ${attempts.get(body)}, where nothing went wrong`
  }
}

/** By body: how often a call with it has failed, and how often it was the suspect. */
function countFailures(events: readonly HistoryEvent[], groupName: string): Map<string, number> {
  const failed = new Map<string, number>()
  const values = new Map<string, string>()
  for (const event of events) {
    if (event.type === 'pull-ok') {
      for (const { offset, value } of event.messages) values.set(`${event.queueId}/${offset}`, value)
      continue
    }
    const isFailure = event.type === 'suspected' || (event.type === 'handle-end' && event.outcome === 'failed')
    if (!isFailure || groupOf(event.group) !== groupName) continue
    const value = event.type === 'suspected' ? values.get(`${event.queueId}/${event.offset}`) : event.value
    const body = bodyOf(value ?? '')
    failed.set(body, (failed.get(body) ?? 0) + 1)
  }
  return failed
}

/** Where everything is handled that there is, nothing waits. */
function* unsettled({ records, group }: Scene): Generator<string> {
  for (const [id, { state }] of records) {
    if (state === 'retrying') yield `the record ${id} says retrying, and group ${group.name} has handled everything`
  }
}

async function readAll(
  world: World,
  groupName: string,
  topicName: string,
): Promise<Pick<Scene, 'records' | 'letters'>> {
  const { store } = world.shared
  const range = { from: { atMs: 0, queueId: 0, offset: 0 }, to: { atMs: 9e14, queueId: 0, offset: 0 } }
  const listed = await store.listFailed({ groupName, topicName, ...range, direction: 'forward', limit: 1e6 })
  const records = new Map(listed.map(record => [`${record.first.queueId}/${record.first.offset}`, record]))

  const messages = new Map<string, BatchMessage>()
  for (const { queueId } of (await store.readTopic(failTopicName(groupName, topicName)))?.queues ?? []) {
    const everything = { queueId, fromOffset: 1, maxBatches: 1e6, maxBytes: 1e9, consistent: true }
    for (const batch of await store.readBatches(everything)) {
      for (const [i, message] of parseMessages(decodeText(batch)).entries()) {
        messages.set(`${queueId}/${batch.base + i}`, message)
      }
    }
  }
  const fromOf = (place: string) => messages.get(place)?.failed?.from?.join('/')
  const idOf = (place: string): string => {
    const from = fromOf(place)
    return from !== undefined && messages.has(from) ? idOf(from) : place
  }
  const letters = Array.from(messages, ([place, { retryCount = 0, body }]): [string, Letter] => [
    place,
    { place, id: idOf(place), from: fromOf(place), retryCount, body },
  ])
  return { records, letters: new Map(letters) }
}
