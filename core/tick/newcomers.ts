import type { Core } from '../core.ts'

/** A consumer that registered and never joined a group is nobody's, once it is silent for this long. */
const newcomerPatienceMs = 600_000

export async function removeNewcomers(core: Core): Promise<void> {
  const heartbeatBeforeMs = core.clock.now() - newcomerPatienceMs
  const newcomers = await core.store.listNewcomers()
  if (newcomers.length === 0) return
  for (const { consumerId, heartbeatAtMs } of await core.store.readConsumers(newcomers)) {
    if (heartbeatAtMs < heartbeatBeforeMs) await core.store.removeConsumer(consumerId, { heartbeatBeforeMs })
  }
}
