import assert from 'node:assert/strict'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { freshState, type Target } from '../../core/notify/target.ts'
import { createPush, type Post, type PushDeps } from '../../functions/edge/push.ts'
import { createRunningClock } from '../support/manual-clock.ts'
import { openSender, secret, serveHttp } from '../webhook/hooks.ts'
import { createTopic } from '../wire/scene.ts'
import { openService, type Service, type ServiceOptions } from '../wire/service.ts'

/** A message as a target is told of it. */
export type Told = {
  id: number
  topicName: string
  consumerGroupName: string
  bizId: string
  head: Record<string, string>
  body: string
  traceId: string
  sendIp: string
  insertTime: string
  tag?: string
  key?: string
  retryCount: number
  queueId: number
}

/** A request as a target gets it. */
export type Got = { msgs: Told[]; headers: IncomingHttpHeaders; text: string }

export const done = { suc: true, failIds: [] }

/** What a target answers: an object as JSON, a status alone, or by its own means. */
export type Reply = object | number | ((outgoing: ServerResponse) => void)

type Options = Omit<ServiceOptions, 'settings'> & { queues?: number; settings?: object }

/** A service with topic `orders` and the group `billing` of mode `claimed`, whose clock goes on by itself. */
export async function setUp({ queues = 2, settings = {}, ...options }: Options = {}) {
  const service = openService({ clock: createRunningClock(), ...options })
  const queueIds = await createTopic(service, 'orders', queues)
  await service.call('createGroup', { name: 'billing', mode: 'claimed' })
  await service.call('subscribe', { threadSize: 1, ...settings }, { groupName: 'billing', topicName: 'orders' })
  return { service, queueIds, ...sceneOf(service, queueIds) }
}

/** The same of a service that is there already. */
export function sceneOf(service: Service, queueIds: number[]) {
  async function publish(bodies: readonly string[], queueId = queueIds[0], more: object = {}) {
    const msgs = bodies.map(body => ({ body, partitionInfo: { queueId }, ...more }))
    const { suc, msg } = await service.call('publish', { topicName: 'orders', msgs, clientIp: '10.9.8.7' })
    assert.equal(suc, true, msg)
  }

  /** A place is shared by readers for a tenth of a second. */
  async function places() {
    service.clock.advance(200)
    return (await service.call('getGroup', undefined, { groupName: 'billing' })).queues
  }

  async function messagesOf(topicName: string) {
    const { queues } = await service.call('getTopicView', undefined, { topicName })
    const found = []
    for (const { queueId } of queues) {
      const { batches = [] } = await service.call('pullData', {
        queueId,
        offsetStart: 0,
        topicName,
        maxBytes: 1_000_000,
      })
      found.push(...batches.flatMap(({ msgs }) => msgs))
    }
    return found
  }

  return {
    publish,
    committed: async () =>
      (await places()).filter(({ topicName }) => topicName === 'orders').map(({ offset }) => offset),
    claimants: async () => (await places()).flatMap(({ claimant }) => claimant ?? []),
    lag: async () => (await places()).reduce((sum, { lag }) => sum + lag, 0),
    /** Body and count of each failure that was stored. */
    failures: async () =>
      (await messagesOf('billing_orders_fail'))
        .map(({ body, retryCount = 0 }) => [body, retryCount] as const)
        .toSorted(([, a], [, b]) => a - b),
    /** Time passes until what has failed is due again. */
    later: (seconds = 61) => service.clock.advance(seconds * 1000),
  }
}

/** A target that answers over a socket as it is told to. */
export async function serveTarget(answer: (got: Got) => Reply | Promise<Reply>) {
  const got: Got[] = []
  const server = await serveHttp(async (incoming, outgoing) => {
    let text = ''
    for await (const chunk of incoming.setEncoding('utf8')) text += chunk
    const request = { msgs: JSON.parse(text).msgs, headers: incoming.headers, text }
    got.push(request)
    const reply = await answer(request)
    if (typeof reply === 'function') reply(outgoing)
    else if (typeof reply === 'number') outgoing.writeHead(reply).end()
    else outgoing.end(JSON.stringify(reply))
  })
  return {
    ...server,
    got,
    /** `queue:offset` of all that it was given, in the order in which it came. */
    seen: () => got.flatMap(({ msgs }) => msgs.map(({ queueId, id }) => `${queueId}:${id}`)),
    bodies: () => got.flatMap(({ msgs }) => msgs.map(({ body }) => body)),
  }
}

export const asSecret = (value: string) => ({ secretId: value.slice(6, 10), value, createdAtMs: 0 })

export function targetAt(url: string, more: Partial<Target> = {}): Target {
  return {
    owner: { groupName: 'billing' },
    name: 'hook',
    kind: 'webhook',
    delivers: 'messages',
    url,
    secrets: [asSecret(secret)],
    createdAtMs: 0,
    minGapMs: 100,
    revision: 1,
    state: freshState,
    ...more,
  }
}

/** Pushes of a service; `run` takes a target's URL. */
export function pushOf(service: Service, deps: Partial<PushDeps> = {}) {
  const posts: Post[] = []
  const run = createPush(service.core, { sender: openSender(), onPost: post => posts.push(post), ...deps })
  return {
    posts,
    run: (url: string, { hints = [] as number[], timeLimitMs = 60_000, target = targetAt(url) } = {}) =>
      run(target, hints, timeLimitMs),
  }
}

export const bodies = (count: number, from = 1) => Array.from({ length: count }, (_, index) => `m${index + from}`)
