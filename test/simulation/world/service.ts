import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, Context } from 'aws-lambda'
import { createLocalBus } from '../../../bin/host/bus.ts'
import { type Bus, type Core, createCore, groupHasChanged, type Settings } from '../../../core/core.ts'
import { rebalance } from '../../../core/group/rebalance.ts'
import { type Endpoint, type EndpointName, endpoints } from '../../../core/protocol/endpoints.ts'
import { StoreError } from '../../../core/store.ts'
import { tick } from '../../../core/tick/tick.ts'
import { adminOptions, adminRoutes } from '../../../functions/edge/admin-routes.ts'
import { consumeOptions, consumeRoutes } from '../../../functions/edge/consume-routes.ts'
import { type HttpHandler, httpHandler } from '../../../functions/edge/http.ts'
import { silentBus } from '../../../functions/edge/lazy-bus.ts'
import { publishRoutes } from '../../../functions/edge/publish-routes.ts'
import type { Dice } from './dice.ts'
import { createFlakyStore, createOrderedStore } from './flaky-store.ts'
import { createProcess, type SimProcess } from './process.ts'
import type { Scheduler } from './scheduler.ts'
import type { SharedStore } from './shared-store.ts'
import type { Weather } from './weather.ts'

export type ServiceOptions = {
  containers: number
  settings: Settings
  tickEveryMs: number
  latePuts: boolean
  /** Containers die at any of their awaits, within so many of them. Undefined: they do not. */
  dieWithin: number | undefined
}

export type ServiceDeps = {
  shared: SharedStore
  scheduler: Scheduler
  weather: Weather
  dice: Dice
  /** Something happened that no fault excuses. */
  onDefect(what: string): void
}

/** The whole service: containers over one store, the bus between them, the schedule. */
export type Service = {
  /** Hands a request to some container. Undefined: the container died with it. */
  receive(path: string, body: string): Promise<Answer | undefined>
  /** The same for a request to an endpoint of the admin function. */
  administer(name: EndpointName, parameters: Record<string, string>, request?: object): Promise<Answer | undefined>
  /** Those that live. */
  containers(): SimProcess[]
  /** From now on containers live. */
  spare(): void
}

export type Answer = { status: number; headers: Record<string, string>; text: string }

type Container = {
  process: SimProcess
  core: Core
  publish: HttpHandler
  consume: HttpHandler
  admin: HttpHandler
  /** Ends the requests that it has in hand. */
  open: Set<() => void>
}

export function createService(deps: ServiceDeps, options: ServiceOptions): Service {
  const { shared, scheduler, weather, dice } = deps
  const isHost = shared.log === undefined
  let dieWithin = options.dieWithin
  let made = 0
  let requests = 0
  const containers = Array.from({ length: options.containers }, start)

  function start(): Container {
    const process = createProcess(scheduler, `container-${++made}`)
    const own = dice.fork()
    const storeDeps = { shared, process, scheduler, weather, dice: dice.fork(), latePuts: options.latePuts }
    const store = isHost ? createOrderedStore(storeDeps) : createFlakyStore(storeDeps)
    const bus = isHost ? busWithin(() => core) : busFrom(process)
    let ids = 0
    const core = createCore({
      store,
      clock: process.clock,
      random: own.random,
      newId: () => `${process.name}-${++ids}`,
      newSecret: () => 'whsec_',
      bus,
      settings: options.settings,
    })
    const container = {
      process,
      core,
      publish: httpHandler(core, publishRoutes),
      consume: httpHandler(core, consumeRoutes, consumeOptions),
      admin: httpHandler(core, adminRoutes, adminOptions),
      open: new Set<() => void>(),
    }
    if (dieWithin !== undefined && own.chance(0.5)) process.dieWithin(Math.ceil(own.spread(1, dieWithin)))
    process.onKilled(() => {
      containers[containers.indexOf(container)] = start()
      for (const end of container.open) end()
    })
    return container
  }

  /** The bus of one machine. */
  function busWithin(core: () => Core): Bus {
    const bus = createLocalBus(async groupName => {
      await rebalance(core(), groupName)
    })
    return {
      ...silentBus,
      async groupChanged(groupName) {
        groupHasChanged(core(), groupName)
        await bus.groupChanged(groupName)
      },
    }
  }

  /** EventBridge: takes an event at once or not at all, and invokes a function, again if that fails, sometimes twice. */
  function busFrom(process: SimProcess): Bus {
    return {
      ...silentBus,
      groupChanged: groupName =>
        new Promise(resolve => {
          if (!dice.chance(weather.lostEvents)) invoke(groupName, 2)
          if (dice.chance(weather.repeatedEvents)) invoke(groupName, 0)
          process.after(dice.spread(0.1, weather.storeLatencyMs), resolve)
        }),
    }
  }

  function invoke(groupName: string, retries: number) {
    scheduler.after(dice.spread(1, weather.networkLatencyMs * 2), () => {
      const { process, core } = dice.pick(asPair(containers))
      process.deliver(() => {
        rebalance(core, groupName).then(
          outcome => outcome === 'busy' && again(),
          error => {
            expectWeather(error)
            again()
          },
        )
      })
    })
    const again = () => {
      if (retries > 0) scheduler.after(dice.spread(1_000, 60_000), () => invoke(groupName, retries - 1))
    }
  }

  function expectWeather(error: unknown) {
    if (!(error instanceof StoreError)) deps.onDefect(`a container failed: ${String(error)}`)
  }

  function scheduleTick() {
    scheduler.after(options.tickEveryMs, () => {
      const { process, core } = dice.pick(asPair(containers))
      process.deliver(() => {
        tick(core).then(({ failed }) => {
          for (const { cause } of failed) expectWeather(cause)
        }, expectWeather)
      })
      scheduleTick()
    })
  }
  scheduler.after(dice.random() * options.tickEveryMs, scheduleTick)

  function receive(path: string, body: string): Promise<Answer | undefined> {
    const container = dice.pick(asPair(containers))
    const handle = publishPaths.has(path) ? container.publish : container.consume
    return invokeWith(container, handle, `POST ${path}`, body)
  }

  function administer(name: EndpointName, parameters: Record<string, string>, request?: object) {
    const container = dice.pick(asPair(containers))
    const { method, path }: Endpoint = endpoints[name]
    return invokeWith(container, container.admin, `${method} ${path}`, JSON.stringify(request), parameters)
  }

  function invokeWith(
    { process, open }: Container,
    handle: HttpHandler,
    routeKey: string,
    body: string | undefined,
    pathParameters: Record<string, string> = {},
  ): Promise<Answer | undefined> {
    const requestId = `request-${++requests}`
    return new Promise((resolve, reject) => {
      const end = () => resolve(undefined)
      open.add(end)
      process.deliver(() => {
        const requestContext = { http: { sourceIp: '127.0.0.1' } }
        const event = { routeKey, body, pathParameters, isBase64Encoded: false, requestContext }
        handle(event as unknown as APIGatewayProxyEventV2, { awsRequestId: requestId } as Context).then(answer => {
          open.delete(end)
          resolve(toAnswer(answer))
        }, reject)
      })
    })
  }

  return {
    receive,
    administer,
    containers: () => containers.map(({ process }) => process),
    spare() {
      dieWithin = undefined
      for (const { process } of containers) process.dieWithin(Number.POSITIVE_INFINITY)
    },
  }
}

const publishPaths = new Set<string>(
  Object.values(endpoints)
    .filter(endpoint => endpoint.function === 'publish')
    .map(({ path }) => path),
)

const asPair = (containers: Container[]) => containers as [Container, ...Container[]]

function toAnswer({ statusCode = 200, headers = {}, body = '' }: APIGatewayProxyStructuredResultV2): Answer {
  return { status: statusCode, headers: headers as Record<string, string>, text: body }
}
