import type { Network } from '../world/network.ts'
import type { SimProcess } from '../world/process.ts'

/** A running program with the SDK in it. */
export type Program = {
  process: SimProcess
  network: Network
  /** Of a consumer. */
  groupName?: string
  /** Ends it in order. Safe to call twice. */
  stop(): Promise<void>
}
