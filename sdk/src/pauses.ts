import type { AssignedQueue } from '../../core/protocol/membership.ts'
import { isText, resolveOptions, wholeNumber } from './options.ts'

/** Which queues: all of them, those of a topic with those of its fail topic, or one. With both, both must be right. */
export type QueueSelection = { topicName?: string | undefined; queueId?: number | undefined }

/** What the application has paused. */
export type Pauses = {
  pause(selection: QueueSelection): void
  /** Ends the pause of the same selection; of everything, all pauses. */
  resume(selection: QueueSelection): void
  isPaused(queue: AssignedQueue): boolean
}

const checks = { topicName: isText, queueId: wholeNumber(1, Number.MAX_SAFE_INTEGER) }

/** A misspelt name would otherwise select everything. */
function checkSelection(given: QueueSelection): QueueSelection {
  const nothing: QueueSelection = { topicName: undefined, queueId: undefined }
  return resolveOptions('pause and resume', given, nothing, checks)
}

/** Makes a list of pauses with none in it. */
export function createPauses(): Pauses {
  let selections: QueueSelection[] = []

  const without = ({ topicName, queueId }: QueueSelection) =>
    selections.filter(paused => paused.topicName !== topicName || paused.queueId !== queueId)

  return {
    pause(given) {
      const selection = checkSelection(given)
      selections = [...without(selection), selection]
    },
    resume(given) {
      const selection = checkSelection(given)
      const isOfAll = selection.topicName === undefined && selection.queueId === undefined
      selections = isOfAll ? [] : without(selection)
    },
    isPaused: ({ topicName: name, originTopicName, queueId: id }) =>
      selections.some(
        ({ topicName = name, queueId = id }) => (topicName === name || topicName === originTopicName) && queueId === id,
      ),
  }
}
