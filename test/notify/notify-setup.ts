import assert from 'node:assert/strict'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Context } from 'aws-lambda'
import type { Notice } from '../../core/notices.ts'
import { localTargets, type NetworkPolicy } from '../../core/notify/network-policy.ts'
import type { Job } from '../../functions/edge/notify/jobs.ts'
import { type NotifyEvent, notifyHandler } from '../../functions/edge/notify/notify-handler.ts'
import { type NotifierParts, openNotifier } from '../../functions/edge/notify/open-notifier.ts'
import { createRunningClock } from '../support/manual-clock.ts'
import { serveHttp } from '../webhook/hooks.ts'
import { createTopic } from '../wire/scene.ts'
import { openService } from '../wire/service.ts'

export const hints = (...queueIds: number[]) => ({
  msgNotifyDtos: queueIds.map(queueId => ({ queueId, consumerGroupName: 'billing' })),
})

/** A request as a target gets it. */
export type Got = { json: unknown; text: string; id: string; headers: IncomingHttpHeaders }
/** What a target answers: a status, or by its own means. */
export type Reply = number | ((outgoing: ServerResponse) => void)

/** A target on this machine that answers as it is told to. */
export async function serveTarget(answer: (got: Got) => Reply | Promise<Reply> = () => 204) {
  const got: Got[] = []
  const server = await serveHttp(async (incoming, outgoing) => {
    let text = ''
    for await (const chunk of incoming.setEncoding('utf8')) text += chunk
    const { headers } = incoming
    const request = { json: JSON.parse(text), text, id: String(headers['webhook-id']), headers }
    got.push(request)
    const reply = await answer(request)
    if (typeof reply === 'function') reply(outgoing)
    else outgoing.writeHead(reply).end()
  })
  return { ...server, got, bodies: () => got.map(({ json }) => json) }
}

/** By the queue of jobs, as the rules of `lib/notify-jobs.ts` have it. */
const isLater = ({ type }: Notice) => type === 'QueueBusy' || type.startsWith('Alarm')

type SceneOptions = {
  mode?: 'balanced' | 'claimed' | 'broadcast'
  queues?: number
  settings?: object
  network?: Partial<NetworkPolicy>
  invokes?: NotifierParts['invokes']
}

/**
 * Topic `orders`, group `billing`, and the notify function with its bus and queue of jobs: what is said is heard when the test
 * says so, and jobs come when their time has.
 */
export async function openScene({ mode = 'balanced', queues = 2, settings = {}, network, invokes }: SceneOptions = {}) {
  const clock = createRunningClock()
  const policy = { ...localTargets, ...network }
  const service = openService({
    clock,
    settings: { targets: { network: policy, functions: ['f'] }, topicCacheMs: 0, groupCacheMs: 0 },
  })
  const { core } = service
  const waiting: { body: object; atMs: number }[] = []
  let notices: Notice[] = []
  core.bus.tell = async notice => void notices.push(notice)
  const parts = { network: policy, ...(invokes && { invokes }) }
  const schedule = async (body: Job, delayMs: number) => void waiting.push({ body, atMs: clock.now() + delayMs })
  const notifier = openNotifier(core, { ...parts, jobs: { schedule } })
  const handle = notifyHandler(notifier)
  const context = { getRemainingTimeInMillis: () => 90_000 } as Context
  const invoke = (event: object) => handle(event as NotifyEvent, context)
  const eventOf = ({ type, ...detail }: Notice) => ({ source: 'pmq', 'detail-type': type, detail })

  const queueIds = await createTopic(service, 'orders', queues)
  await service.call('createGroup', { name: 'billing', mode })
  await service.call('subscribe', settings, { groupName: 'billing', topicName: 'orders' })
  notices = []

  async function runJobs(): Promise<number> {
    const due = waiting.filter(({ atMs }) => atMs <= clock.now())
    for (const job of due) waiting.splice(waiting.indexOf(job), 1)
    if (due.length === 0) return 0
    const Records = due.map(({ body }, i) => ({ messageId: String(i), body: JSON.stringify(body) }))
    const { batchItemFailures = [] } = (await invoke({ Records })) ?? {}
    assert.deepEqual(batchItemFailures, [])
    return due.length
  }

  /** All that was said is heard, and all jobs run whose time has come. */
  async function settle(): Promise<void> {
    do {
      const said = notices
      notices = []
      for (const notice of said.filter(isLater)) waiting.push({ body: eventOf(notice), atMs: clock.now() + 1_000 })
      await Promise.all(said.filter(notice => !isLater(notice)).map(notice => invoke(eventOf(notice))))
    } while ((await runJobs()) > 0 || notices.length > 0)
  }

  return {
    service,
    core,
    clock,
    queueIds,
    waiting,
    notifier,
    notices: () => notices,
    invoke,
    settle,
    /** Lets time pass, job by job. */
    async pass(ms: number): Promise<void> {
      const untilMs = clock.now() + ms
      for (;;) {
        await settle()
        const next = Math.min(...waiting.map(({ atMs }) => atMs))
        if (next > untilMs) break
        clock.advance(Math.max(0, next - clock.now()))
      }
      clock.advance(Math.max(0, untilMs - clock.now()))
    },
    put: (targetName: string, request: object) =>
      service.call('putTarget', request, { groupName: 'billing', targetName }),
    async publish(queueId = queueIds[0], count = 1) {
      const msgs = Array.from({ length: count }, (_, i) => ({ body: `m${i}`, partitionInfo: { queueId } }))
      const { suc, msg } = await service.call('publish', { topicName: 'orders', msgs })
      assert.equal(suc, true, msg)
    },
    target: (targetName = 'hook') => service.call('getTarget', undefined, { groupName: 'billing', targetName }),
    deliveries: async (targetName = 'hook') =>
      (await service.call('listTargetDeliveries', {}, { groupName: 'billing', targetName })).deliveries,
    async close() {
      notifier.close()
      await service.close()
    },
  }
}
