import type { Core } from '../../../core/core.ts'
import type { NetworkPolicy } from '../../../core/notify/target-url.ts'
import type { Invoke } from '../push/invoke.ts'
import { createPush } from '../push.ts'
import { createWebhookSender, type WebhookSender } from '../webhook/sender.ts'
import { createCallbacks } from './callbacks.ts'
import type { Jobs } from './jobs.ts'
import { createNotifier, type Notifier } from './notifier.ts'
import { createReach } from './reach.ts'

export type NotifierParts = {
  network: NetworkPolicy
  jobs: Jobs
  /** How functions are invoked, waiting and not. Absent: this service invokes none. */
  invokes?: { sync: Invoke; async: Invoke }
}

/** Makes a notifier with all that it sends by. `close` ends its connections. */
export function openNotifier(
  core: Core,
  { network, jobs, invokes }: NotifierParts,
): Notifier & Pick<WebhookSender, 'close'> {
  const sender = createWebhookSender(network, { clock: core.clock })
  const reach = createReach({ clock: core.clock, sender, ...(invokes && { invokeAsync: invokes.async }) })
  const notifier = createNotifier(core, {
    jobs,
    reach,
    callbacks: createCallbacks(core, reach),
    push: onPost => createPush(core, { sender, onPost, ...(invokes && { invoke: invokes.sync }) }),
  })
  return { ...notifier, close: sender.close }
}
