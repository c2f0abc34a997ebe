import type { PulledBatch } from '../../../core/protocol/pull.ts'
import type { EventListener, TracedMessage } from '../events.ts'
import type { Message } from '../message.ts'

/** Tells what happens to the messages of a queue while its subscription is traced; never their bodies. */
export type Trace = {
  /** Whoever would have to build something for the trace asks this first. */
  isOn: boolean
  pulled(batch: PulledBatch, firstIndex: number): void
  tell(step: 'began' | 'ended' | 'failed', messages: readonly Message[]): void
  committed(offset: number): void
}

/** Makes a trace that is off. */
export function createTrace(
  queue: { groupName: string; topicName: string; queueId: number },
  emit: EventListener,
): Trace {
  return {
    isOn: false,
    pulled({ offset, msgs }, firstIndex) {
      const messages = msgs.slice(firstIndex).map(({ traceId = '', bizId = '' }, index): TracedMessage => {
        return { offset: offset + firstIndex + index, traceId, bizId }
      })
      emit({ type: 'trace', step: 'pulled', ...queue, messages })
    },
    tell(step, messages) {
      const traced = messages.map(({ offset, traceId, bizId }) => ({ offset, traceId, bizId }))
      emit({ type: 'trace', step, ...queue, messages: traced })
    },
    committed(offset) {
      emit({ type: 'trace', step: 'committed', ...queue, offset })
    },
  }
}
