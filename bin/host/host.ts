import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createCore, defaultSettings, groupHasChanged } from '../../core/core.ts'
import { rebalance } from '../../core/group/rebalance.ts'
import { localTargets, publicTargets } from '../../core/notify/network-policy.ts'
import { systemClock } from '../../core/protocol/clock.ts'
import { tick } from '../../core/tick/tick.ts'
import { adminOptions, adminRoutes } from '../../functions/edge/admin-routes.ts'
import { consumeOptions, consumeRoutes } from '../../functions/edge/consume-routes.ts'
import { newId, newSecret } from '../../functions/edge/core.ts'
import { httpHandler } from '../../functions/edge/http.ts'
import { logError } from '../../functions/edge/log.ts'
import { publishRoutes } from '../../functions/edge/publish-routes.ts'
import { createAlarmVoice, createAttention, createObituary } from './attention.ts'
import { createLocalBus } from './bus.ts'
import { matchRoute, toContext } from './gateway.ts'
import { createLocalNotify } from './notify.ts'
import { createSchedule } from './schedule.ts'
import { createHttpServer } from './server.ts'
import type { HostStore } from './store.ts'

export type HostOptions = {
  /** 0: any free port. */
  port: number
  /** Milliseconds without a heartbeat after which a consumer is given up. */
  sessionTimeoutMs: number
  /** Whether consumers may belong to sub-environments. */
  subEnvironments: boolean
  /** Whether targets may be on this machine and in its networks, by http and at any port. */
  allowLocalTargets: boolean
}

export type Host = { url: string; place: string; stop(): Promise<void> }

/** Nobody but this machine: there are no keys here. */
const loopback = '127.0.0.1'
/** Waiting costs nothing here, so pulls and polls are held for as long as clients like. */
const holdMs = 10_000
/** A hundred consumers that start together join within some of these; a thousand take longer, and so do the pauses. */
const rebalancePauseMs = 25
const longestRebalancePauseMs = 1_000
/** More often than a minute on AWS, where each run is paid for. */
const tickEveryMs = 5_000

/** The whole service in one process: the functions' own handlers, the bus, the schedule. Takes over `opened`. */
export async function startHost(opened: HostStore, options: HostOptions): Promise<Host> {
  const { store, compression, place } = opened
  const bus = createLocalBus(
    async groupName => {
      const outcome = await rebalance(core, groupName)
      if (outcome === 'busy') throw new Error('it changes too fast')
    },
    run => systemClock.sleep(Math.min(longestRebalancePauseMs, rebalancePauseMs * 2 ** run)),
  )
  const obituary = createObituary(console.warn)
  const sayAlarm = createAlarmVoice(console.warn)
  const core = createCore({
    store,
    onDeadLetters: obituary.note,
    clock: systemClock,
    random: Math.random,
    newId,
    newSecret,
    bus: {
      async tell(notice) {
        sayAlarm(notice)
        await notify.tell(notice)
        return undefined
      },
      async groupChanged(groupName) {
        groupHasChanged(core, groupName)
        await bus.groupChanged(groupName)
      },
    },
    settings: {
      ...defaultSettings,
      compression,
      timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      pollHoldMs: holdMs,
      pullHoldMs: holdMs,
      sessionTimeoutMs: options.sessionTimeoutMs,
      subEnvironments: options.subEnvironments,
      targets: { network: options.allowLocalTargets ? localTargets : publicTargets, functions: [] },
    },
  })
  const notify = createLocalNotify(core)
  const handlers = {
    publish: httpHandler(core, publishRoutes),
    consume: httpHandler(core, consumeRoutes, consumeOptions),
    admin: httpHandler(core, adminRoutes, adminOptions),
  }
  const server = createHttpServer({
    match: matchRoute,
    invoke: ({ target }, event, requestId) => handlers[target](event, toContext(requestId)),
  })
  const port = await listen(server, options.port)
  const attend = createAttention(console.warn)
  const schedule = createSchedule(systemClock, tickEveryMs, async () => {
    try {
      const report = await tick(core)
      attend(report)
      obituary.tell()
      for (const { what, cause } of report.failed) logError('the tick could not finish', { what }, cause)
      await opened.upkeep(systemClock.now())
    } catch (error) {
      logError('the tick failed', {}, error)
    }
  })
  return {
    url: `http://${loopback}:${port}`,
    place,
    async stop() {
      await schedule.stop()
      obituary.tell()
      core.arrivals.close()
      await closeServer(server)
      await bus.settled()
      await notify.stop()
      await opened.close()
    },
  }
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, loopback, () => resolve((server.address() as AddressInfo).port))
  })
}

/** How long requests that run may take to end when the host stops. */
const drainMs = 5_000

function closeServer(server: Server): Promise<void> {
  const impatience = setTimeout(() => server.closeAllConnections(), drainMs)
  return new Promise(resolve => {
    server.close(() => {
      clearTimeout(impatience)
      resolve()
    })
    server.closeIdleConnections()
  })
}
