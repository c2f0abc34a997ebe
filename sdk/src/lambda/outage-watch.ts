import type { Clock } from '../../../core/protocol/clock.ts'
import type { Api } from '../api.ts'
import { asClientError, type PmqClientError } from '../errors.ts'

/** The service, and whether it answers. */
export type WatchedApi = {
  api: Api
  /** Why there is no answer; undefined since the last one that came. */
  readonly trouble: PmqClientError | undefined
}

/** Somebody calls the function again; until then, waiting for a service that is away is paid for and helps nobody. */
const patienceMs = 10_000

/** Calls `onAway` when no request has been answered for ten seconds in which some were made. */
export function watchForOutage(api: Api, clock: Clock, onAway: () => void): WatchedApi {
  let trouble: PmqClientError | undefined
  let failingSinceMs = Number.POSITIVE_INFINITY

  function watch<Request, Options, Answer>(call: (request: Request, options: Options) => Promise<Answer>) {
    return async (request: Request, options: Options) => {
      const askedAtMs = clock.monotonic()
      try {
        const answer = await call(request, options)
        trouble = undefined
        failingSinceMs = Number.POSITIVE_INFINITY
        return answer
      } catch (thrown) {
        const error = asClientError(thrown)
        if (error.code !== 'aborted') {
          trouble = error
          failingSinceMs = Math.min(failingSinceMs, askedAtMs)
          if (clock.monotonic() - failingSinceMs >= patienceMs) onAway()
        }
        throw error
      }
    }
  }

  return {
    api: {
      ...api,
      claimQueues: watch(api.claimQueues),
      pullData: watch(api.pullData),
      commitOffset: watch(api.commitOffset),
      publishAndUpdateResultFailMsg: watch(api.publishAndUpdateResultFailMsg),
    },
    get trouble() {
      return trouble
    },
  }
}
