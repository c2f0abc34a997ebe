import assert from 'node:assert/strict'
import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import type { APIGatewayProxyEventV2, Context } from 'aws-lambda'
import { createCore, defaultSettings } from '../../core/core.ts'
import type { Clock } from '../../core/protocol/clock.ts'
import { type Endpoint, type EndpointName, endpoints } from '../../core/protocol/endpoints.ts'
import { adminOptions, adminRoutes } from '../../functions/edge/admin-routes.ts'
import { consumeOptions, consumeRoutes } from '../../functions/edge/consume-routes.ts'
import { newSecret } from '../../functions/edge/core.ts'
import { httpHandler } from '../../functions/edge/http.ts'
import { silentBus } from '../../functions/edge/lazy-bus.ts'
import { publishRoutes } from '../../functions/edge/publish-routes.ts'
import { type TickEvent, tickHandler } from '../../functions/edge/tick-handler.ts'
import { actionsOf } from '../../rehearsal/aws/dynamodb-actions.ts'
import { openDynamoStore } from '../../store/dynamo/open.ts'
import { createTables } from '../../store/dynamo/tables.ts'
import { engineClient } from '../support/dynamo-store.ts'
import { textOf } from '../wire/service.ts'

const tables = { logTable: 'log', registryTable: 'registry' }
const context = { awsRequestId: 'request' } as Context

export type Containers = Awaited<ReturnType<typeof startContainers>>

/**
 * The four functions, each in a container of its own, on a DynamoDB engine. Each notes the actions that its role would
 * be asked for: on `log`, `registry` and `bus`.
 */
export async function startContainers(endpoint: string, clock: Clock) {
  const client = engineClient(endpoint)
  await createTables(client, tables)
  client.destroy()

  const functions = {
    publish: createContainer(endpoint, clock, { announces: false }),
    consume: createContainer(endpoint, clock, { announces: true }),
    admin: createContainer(endpoint, clock, { announces: true }),
    tick: createContainer(endpoint, clock, { announces: false }),
  }
  const handlers = {
    publish: httpHandler(functions.publish.core, publishRoutes),
    consume: httpHandler(functions.consume.core, consumeRoutes, consumeOptions),
    admin: httpHandler(functions.admin.core, adminRoutes, adminOptions),
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
      return parsed
    },

    tick: (detail: TickEvent['detail'] = {}, type = 'Scheduled Event') =>
      handleTick({ 'detail-type': type, detail } as TickEvent, context),

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
      for (const { core } of Object.values(functions)) await core.store.close()
    },
  }
}

function createContainer(endpoint: string, clock: Clock, { announces }: { announces: boolean }) {
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
  const say = async () => note('bus', 'events:PutEvents')
  const core = createCore({
    store: openDynamoStore({ client, ...tables }),
    clock,
    random: Math.random,
    newId: () => crypto.randomUUID(),
    newSecret,
    bus: announces ? { groupChanged: say, tell: say } : silentBus,
    settings: { ...defaultSettings, pollHoldMs: 0, topicCacheMs: 0, groupCacheMs: 0 },
  })
  return { core, used, partitions }
}

/** The partition of a key, as far as it is called by a text: `FAILED#` of `FAILED#group#topic`. */
const partitionOf = (pk: unknown) => /^[A-Z]+#?/.exec((pk as AttributeValue | undefined)?.S ?? '')?.[0]
