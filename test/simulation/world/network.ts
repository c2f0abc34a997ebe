import type { IncomingMessage } from 'node:http'
import { endpoints } from '../../../core/protocol/endpoints.ts'
import { PmqClientError } from '../../../sdk/src/errors.ts'
import { readHttpAnswer } from '../../../sdk/src/http-answer.ts'
import type { Transport } from '../../../sdk/src/transport.ts'
import type { Dice } from './dice.ts'
import type { SimProcess } from './process.ts'
import type { Scheduler } from './scheduler.ts'
import type { Service } from './service.ts'
import { drawLatency, type Weather } from './weather.ts'

export type NetworkDeps = {
  scheduler: Scheduler
  service: Service
  weather: Weather
  dice: Dice
  /** Whether a publish may go on in the service when its sender has lost the connection already. */
  cutPublishes: boolean
  onDefect(what: string): void
}

/** The way of one process to the service. */
export type Network = {
  transport: Transport
  /** While true nothing goes through, in either direction. */
  isCut: boolean
}

export function connect(deps: NetworkDeps, process: SimProcess): Network {
  const { scheduler, service, weather, dice } = deps
  const latency = () => drawLatency(dice, weather.networkLatencyMs)
  const network: Network = { transport, isCut: false }
  return network

  function transport(path: string, request: object, options: Parameters<Transport>[2]): Promise<unknown> {
    const { timeoutMs, signal } = options
    return new Promise((resolve, reject) => {
      if (!process.isAlive) return
      if (signal?.aborted) return reject(new PmqClientError('aborted', `${path} was given up before it was sent`))
      // The machine that runs the simulation must not show in it.
      const text = JSON.stringify({ ...request, clientIp: addressOf(process.name) })
      let isSettled = false
      const timer = process.after(timeoutMs, () => fail('timeout'))
      const onAbort = () => fail('aborted')
      signal?.addEventListener('abort', onAbort, { once: true })

      function settle(): boolean {
        if (isSettled) return false
        isSettled = true
        timer.cancel()
        signal?.removeEventListener('abort', onAbort)
        return true
      }
      function fail(code: 'timeout' | 'aborted' | 'unreachable' | 'connection_lost') {
        if (settle()) reject(new PmqClientError(code, `${path}: ${code}`))
      }
      /** The sender finds out by a reset of the connection, or only by its time-out. */
      function lose(afterMs = latency()) {
        if (dice.chance(0.5)) process.after(afterMs, () => fail('connection_lost'))
      }

      if (network.isCut || dice.chance(weather.unreachable)) {
        return dice.chance(0.5) ? lose() : void process.after(latency(), () => fail('unreachable'))
      }
      if (dice.chance(weather.lostRequests)) return lose()
      const isPublish = appendPaths.has(path)
      const isCutOff = (!isPublish || deps.cutPublishes) && dice.chance(weather.cutConnections)
      if (!isPublish && dice.chance(weather.repeatedRequests)) {
        scheduler.after(dice.spread(1, 3_000), () => void service.receive(path, text))
      }
      const isAnswerLost = dice.chance(weather.lostAnswers)
      later(async () => {
        if (isCutOff) lose(dice.spread(1, 2_000))
        const answer = await service.receive(path, text)
        if (answer && !excused.has(answer.status))
          deps.onDefect(`${path} was answered ${answer.status}: ${answer.text}`)
        if (isAnswerLost || network.isCut) return lose()
        later(() =>
          process.deliver(() => {
            try {
              const value = read(answer ?? crashed, path, process.clock.now())
              if (settle()) resolve(value)
            } catch (error) {
              if (settle()) reject(error)
            }
          }),
        )
      })
    })
  }

  function later(act: () => void) {
    const ms = latency()
    if (ms === 0) act()
    else scheduler.after(ms, act)
  }
}

/** Programs are spread over so many addresses, so that denying one means some of them. */
export const addresses = 3

const addressOf = (name: string) => `10.0.0.${(Number(/\d+$/.exec(name)?.[0] ?? 0) % addresses) + 1}`

/** Where the service appends: it counts on how late those who send again do so. */
const appendPaths = new Set<string>([endpoints.publish.path, endpoints.publishAndUpdateResultFailMsg.path])

/** What the weather explains: throttled, unavailable. */
const excused = new Set([200, 429, 503])
/** What API Gateway says for a function that died. */
const crashed = { status: 502, headers: {}, text: '{"message":"Internal server error"}' }

function read({ status, headers, text }: typeof crashed, path: string, nowMs: number): unknown {
  const incoming = { statusCode: status, headers: headers as Record<string, string> }
  return readHttpAnswer(incoming as IncomingMessage, [Buffer.from(text)], path, nowMs)
}
