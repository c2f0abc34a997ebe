import { systemClock } from '../../core/protocol/clock.ts'
import { PmqClientError } from '../../sdk/src/errors.ts'
import { createHttpTransport, type Transport } from '../../sdk/src/transport.ts'

/** A way to the service that loses requests now and then, and can be cut, as a crash of its user would. */
export type Way = {
  transport: Transport
  /** From here on nothing passes. What is under way gets no answer. */
  cut(): void
  close(): void
}

/** @param faults the share of requests that something happens to */
export function openWay(url: string, faults: number): Way {
  const http = createHttpTransport({ url, headers: {}, maxAnswerBytes: 2 ** 24, clock: systemClock })
  const cutting = new AbortController()

  async function transport(path: string, request: object, options: Parameters<Transport>[2]) {
    if (cutting.signal.aborted) throw new PmqClientError('unreachable', 'the way is cut')
    const dice = Math.random()
    if (dice < faults / 3) throw new PmqClientError('unreachable', 'the request was lost')
    if (dice < (faults * 2) / 3) {
      await systemClock.sleep(options.timeoutMs, options.signal)
      throw new PmqClientError(options.signal?.aborted ? 'aborted' : 'timeout', 'no answer')
    }
    const answer = await http.call(path, request, options)
    if (dice < faults || cutting.signal.aborted) throw new PmqClientError('connection_lost', 'the answer was lost')
    return answer
  }

  return { transport, cut: () => cutting.abort(), close: http.close }
}
