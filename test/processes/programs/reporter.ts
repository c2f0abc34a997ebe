import type { ClientEvent } from 'pmq-sdk'
import { systemClock } from '../../../core/protocol/clock.ts'
import { createHttpTransport, type HttpTransport } from '../../../sdk/src/transport.ts'
import { createHistory, type HistoryEvent } from '../../checker/history.ts'
import { now } from '../now.ts'

/** What a program tells whoever started it. Messages carry several, in the order in which they happened. */
export type Report = { event: HistoryEvent } | { told: Told } | { defect: string } | { state: 'blocked' }

/** What the SDK told its program. An error has to travel as a text. */
export type Told = Omit<ClientEvent, 'error'> & { operation?: string; code?: string; consumerName?: string }

export type Reporter = ReturnType<typeof createReporter>

/**
 * A program's history, which its parent keeps, since the program may not live to the end. Whatever has to be known of a
 * program that is killed is written before it can have an effect: `flush` is awaited before a request goes out, and
 * before a handler's success counts. What is written to the channel is read by the parent, even from a dead program.
 */
export function createReporter() {
  let unsent: Report[] = []
  let written = Promise.resolve()

  function report(one: Report) {
    if (unsent.push(one) === 1) setImmediate(flush)
  }

  /** Resolves when all that was reported until now is out of this process. */
  function flush(): Promise<void> {
    if (unsent.length === 0) return written
    const reports = unsent
    unsent = []
    written = new Promise(resolve => {
      process.send?.(reports, () => resolve())
    })
    return written
  }

  // The parent has died, or has lost interest.
  const leave = () => process.exit(1)
  process.once('disconnect', leave)

  return {
    history: createHistory(now, event => report({ event })),
    onDefect: (defect: string) => report({ defect }),
    onEvent({ ...event }: ClientEvent) {
      const { error, ...told } = { error: undefined, ...event }
      report({ told: { ...told, ...(hasCode(error) && { code: error.code }) } })
    },
    report,
    flush,
    /** A way to the service on which no request goes out before all that led to it is known. */
    connect(url: string): HttpTransport {
      const http = createHttpTransport({ url, headers: {}, maxAnswerBytes: 2 ** 24, clock: systemClock })
      return {
        async call(path, request, options) {
          await flush()
          return http.call(path, request, options)
        },
        endIdle: http.endIdle,
        close: http.close,
      }
    },
    /** Lets the process end. */
    async end() {
      await flush()
      process.off('disconnect', leave)
      process.disconnect?.()
    },
  }
}

function hasCode(error: unknown): error is { code: string } {
  return error instanceof Error && 'code' in error
}
