import type { Network } from '../world/network.ts'
import type { SimProcess } from '../world/process.ts'

/** A running program with the SDK in it. */
export type Program = {
  process: SimProcess
  network: Network
  /** Of a consumer. */
  groupName?: string
  /** Of a consumer that has one: the place that it takes in its group. */
  instanceId?: string | undefined
  /** Of a consumer: what its group is called for it, while it is a member. */
  memberOf?(): string | undefined
  /** Of a consumer: the service has given it up at some time. */
  hasExpired?(): boolean
  /** Of a consumer: it has ended, since another one has its place. */
  isReplaced?(): boolean
  /** Of a consumer: what it found, by a look at everything, not to have been told of. */
  missed?(): readonly string[]
  /** Ends it in order. Safe to call twice. */
  stop(): Promise<void>
}
