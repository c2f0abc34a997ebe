import type { Core } from '../core.ts'
import type { RegisterRequest, RegisterResponse } from '../protocol/membership.ts'

/** Registers a consumer by its name. The same name gets the same id, and counts as alive from now on. */
export async function register(core: Core, request: RegisterRequest): Promise<RegisterResponse> {
  // A store need not take what is no Unicode: half a surrogate pair is replaced.
  const [name, clientIp, sdkVersion, lan] = [request.name, request.clientIp, request.sdkVersion, request.lan].map(
    text => text?.toWellFormed(),
  )
  if (!name) return { suc: false, msg: 'ConsumerName不能为空！' }
  if (!clientIp) return { suc: false, msg: 'Ip不能为空！' }
  if (!sdkVersion) return { suc: false, msg: 'SdkVersion不能为空！' }
  const consumerId = await core.store.registerConsumer({
    // A known consumer may be given up at this very moment. If it is, it comes back as a new one: by its old id it would
    // be taken out of its groups again by whoever is giving it up.
    consumerId: await core.store.takeIds('consumer', 1),
    name,
    ip: clientIp,
    sdkVersion,
    lan: lan ?? '',
    heartbeatAtMs: core.clock.now(),
    groupNames: [],
  })
  return { suc: true, id: consumerId }
}
