import type { FailedView } from '../protocol/failed.ts'
import { idOf } from './names.ts'
import type { Seen } from './scan.ts'

/** A failed message as operators see it. */
export function viewFailed({ record, state }: Seen): FailedView {
  const { groupName: _group, topicName: _topic, first, claimedUntilMs: _claim, ...told } = record
  return { ...told, failedId: idOf(record), state, firstFailedAtMs: first.atMs }
}
