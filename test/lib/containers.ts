import assert from 'node:assert/strict'
import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import type { APIGatewayProxyEventV2, Context } from 'aws-lambda'
import { createCore, defaultSettings } from '../../core/core.ts'
import type { Notice } from '../../core/notices.ts'
import { publicTargets } from '../../core/notify/network-policy.ts'
import type { Clock } from '../../core/protocol/clock.ts'
import { type Endpoint, type EndpointName, endpoints } from '../../core/protocol/endpoints.ts'
import { adminOptions, adminRoutes } from '../../functions/edge/admin-routes.ts'
import { consumeOptions, consumeRoutes } from '../../functions/edge/consume-routes.ts'
import { newSecret } from '../../functions/edge/core.ts'
import { httpHandler } from '../../functions/edge/http.ts'
import type { Job } from '../../functions/edge/notify/jobs.ts'
import { type NotifyEvent, notifyHandler } from '../../functions/edge/notify/notify-handler.ts'
import { openNotifier } from '../../functions/edge/notify/open-notifier.ts'
import { publishRoutes } from '../../functions/edge/publish-routes.ts'
import { type TickEvent, tickHandler } from '../../functions/edge/tick-handler.ts'
import { actionsOf } from '../../rehearsal/aws/dynamodb-actions.ts'
import { openDynamoStore } from '../../store/dynamo/open.ts'
import { createTables } from '../../store/dynamo/tables.ts'
import { engineClient } from '../support/dynamo-store.ts'
import { textOf } from '../wire/service.ts'

/** As `PMQ_CALLBACK_NETWORKS` has it: at PMQ's path a webhook may be on this machine. */
const targets = { network: { ...publicTargets, callbackNetworks: ['127.0.0.0/8'] }, functions: [] }
const tables = { logTable: 'log', registryTable: 'registry' }
const context = { awsRequestId: 'request' } as Context
const withTime: Context = { ...context, getRemainingTimeInMillis: () => 60_000 }

export type Containers = Awaited<ReturnType<typeof startContainers>>

/**
 * The five functions, each in a container of its own, on a DynamoDB engine. Each notes the actions that its role would
 * be asked for: on `log`, `registry`, `bus` and `jobs`.
 */
export async function startContainers(endpoint: string, clock: Clock) {
  const client = engineClient(endpoint)
  await createTables(client, tables)
  client.destroy()

  const functions = {
    publish: createContainer(endpoint, clock),
    consume: createContainer(endpoint, clock),
    admin: createContainer(endpoint, clock),
    tick: createContainer(endpoint, clock),
    notify: createContainer(endpoint, clock),
  }
  const handlers = {
    publish: httpHandler(functions.publish.core, publishRoutes),
    consume: httpHandler(functions.consume.core, consumeRoutes, consumeOptions),
    admin: httpHandler(functions.admin.core, adminRoutes, adminOptions),
  }
  const jobs: { job: Job; atMs: number }[] = []
  const notifier = openNotifier(functions.notify.core, {
    network: functions.notify.core.settings.targets.network,
    jobs: {
      async schedule(job, delayMs) {
        functions.notify.note('jobs', 'sqs:SendMessage')
        jobs.push({ job, atMs: clock.now() + delayMs })
      },
    },
  })
  const handleNotify = notifyHandler(notifier)
  const handTo = (event: object) => handleNotify(event as NotifyEvent, withTime)

  /** What was said is heard, and jobs run that are due. */
  async function settle(): Promise<void> {
    for (;;) {
      const said = Object.values(functions).flatMap(({ notices }) => notices.splice(0))
      for (const { type, ...detail } of said) await handTo({ 'detail-type': type, detail })
      const due = jobs.filter(({ atMs }) => atMs <= clock.now())
      for (const each of due) jobs.splice(jobs.indexOf(each), 1)
      // As Lambda does by the function's role.
      for (const action of ['ReceiveMessage', 'DeleteMessage', 'GetQueueAttributes'])
        if (due.length > 0) functions.notify.note('jobs', `sqs:${action}`)
      if (due.length > 0)
        await handTo({ Records: due.map(({ job }, i) => ({ messageId: String(i), body: JSON.stringify(job) })) })
      else if (said.length === 0) return
    }
  }

  const handleTick = tickHandler(functions.tick.core, 'Pmq')
  const called = new Set<EndpointName>()

  return {
    /** The endpoints that have been called, and answered with success. */
    called,

    /** Sends a request through its function's handler; fails unless it succeeds. */
    async call(name: EndpointName, request?: object, pathParameters: Record<string, string> = {}) {
      const endpoint: Endpoint = endpoints[name]
      const { method, path, function: functionName } = endpoint
      const text = textOf(endpoint, request)
      const sent = method === 'GET' ? { rawQueryString: text } : { body: text }
      const requestContext = { http: { sourceIp: '127.0.0.1' } }
      const event = { routeKey: `${method} ${path}`, pathParameters, ...sent, isBase64Encoded: false, requestContext }
      const answer = await handlers[functionName](event as unknown as APIGatewayProxyEventV2, context)
      const isText = String(answer.headers?.['content-type']).startsWith('text/')
      const parsed = isText ? { text: answer.body } : JSON.parse(answer.body ?? '')
      assert.ok(Number(answer.statusCode) < 300 && parsed.suc !== false, `${name}: ${answer.body}`)
      called.add(name)
      await settle()
      return parsed
    },

    async tick(detail: TickEvent['detail'] = {}, type = 'Scheduled Event') {
      await handleTick({ 'detail-type': type, detail } as TickEvent, withTime)
      await settle()
    },

    /** Resource → the actions that a function has used on it, in order. */
    usedBy(name: keyof typeof functions): Record<string, string[]> {
      return Object.fromEntries(
        Array.from(functions[name].used, ([resource, actions]) => [resource, [...actions].sort()]),
      )
    },

    /** In which partitions a function has used an action on single items. */
    partitionsOf: (name: keyof typeof functions, table: string, action: string) => [
      ...(functions[name].partitions.get(`${table} ${action}`) ?? []),
    ],

    async close() {
      notifier.close()
      for (const { core } of Object.values(functions)) await core.store.close()
    },
  }
}

function createContainer(endpoint: string, clock: Clock) {
  const used = new Map<string, Set<string>>()
  const note = (resource: string, action: string) => {
    used.set(resource, (used.get(resource) ?? new Set()).add(action))
  }
  const partitions = new Map<string, Set<string>>()
  const notePartition = (what: string, partition: string) => {
    partitions.set(what, (partitions.get(what) ?? new Set()).add(partition))
  }
  const client = engineClient(endpoint)
  client.middlewareStack.add(
    (next, { commandName }) =>
      args => {
        for (const { table, action, keys } of actionsOf(String(commandName).replace(/Command$/, ''), args.input)) {
          note(table, action)
          for (const { pk } of keys) {
            const partition = partitionOf(pk)
            if (partition) notePartition(`${table} ${action}`, partition)
          }
        }
        return next(args)
      },
    { step: 'initialize' },
  )
  const notices: Notice[] = []
  const groupChanged = async () => note('bus', 'events:PutEvents')
  const tell = async (notice: Notice) => {
    note('bus', 'events:PutEvents')
    notices.push(notice)
    return undefined
  }
  const core = createCore({
    store: openDynamoStore({ client, ...tables }),
    clock,
    random: Math.random,
    newId: () => crypto.randomUUID(),
    newSecret,
    bus: { groupChanged, tell },
    settings: { ...defaultSettings, targets, pollHoldMs: 0, topicCacheMs: 0, groupCacheMs: 0 },
  })
  return { core, used, note, partitions, notices }
}

/** The partition of a key, as far as it is called by a text: `FAILED#` of `FAILED#group#topic`. */
const partitionOf = (pk: unknown) => /^[A-Z]+#?/.exec((pk as AttributeValue | undefined)?.S ?? '')?.[0]
