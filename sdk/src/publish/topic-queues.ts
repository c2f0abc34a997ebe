import type { Clock } from '../../../core/protocol/clock.ts'

/** Knows the writable queues of topics, by asking once in a while. */
export type TopicQueues = {
  /**
   * The writable queues of a topic; none if the service does not know the topic. Rejects if it must ask and gets no
   * answer; a list that is merely old is renewed behind the caller's back.
   */
  get(topicName: string): Promise<readonly number[]>
}

/** How long a list is taken for current: as long as in PMQ's client. */
const freshForMs = 20_000

type Entry = { queueIds: readonly number[]; askedAtMs: number }

/** `ask` brings the writable queues of a topic; none if there is no such topic. */
export function createTopicQueues(deps: {
  ask(topicName: string): Promise<readonly number[]>
  clock: Clock
}): TopicQueues {
  const known = new Map<string, Entry>()
  const asking = new Map<string, Promise<readonly number[]>>()

  async function ask(topicName: string): Promise<readonly number[]> {
    try {
      const queueIds = await deps.ask(topicName)
      // A topic without queues is asked for each time: it may be created any moment.
      if (queueIds.length > 0) known.set(topicName, { queueIds, askedAtMs: deps.clock.monotonic() })
      else known.delete(topicName)
      return queueIds
    } finally {
      asking.delete(topicName)
    }
  }

  function askOnce(topicName: string): Promise<readonly number[]> {
    let answer = asking.get(topicName)
    if (!answer) {
      answer = ask(topicName)
      asking.set(topicName, answer)
    }
    return answer
  }

  return {
    async get(topicName) {
      const entry = known.get(topicName)
      if (!entry) return askOnce(topicName)
      if (deps.clock.monotonic() - entry.askedAtMs >= freshForMs) {
        // Counted as asked whatever comes of it: a service in trouble is not asked again with each publish.
        entry.askedAtMs = deps.clock.monotonic()
        askOnce(topicName).catch(() => undefined)
      }
      return entry.queueIds
    },
  }
}
