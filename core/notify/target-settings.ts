import type { GroupMode } from '../model.ts'
import { PmqError } from '../protocol/errors.ts'
import type { PutTargetRequest } from '../protocol/targets.ts'
import type { TargetPolicy } from './network-policy.ts'
import type { Target, TargetSettings } from './target.ts'
import { refuseTargetUrl } from './target-url.ts'

const defaults = { kind: 'webhook', delivers: 'hints', minGapMs: 100 } as const

/** What a target is to be set to; what is not given stays as it is. Throws what is wrong with it, and what would not be. */
export function targetSettings(
  request: Omit<PutTargetRequest, 'secret'>,
  current: Target | undefined,
  policy: TargetPolicy,
): TargetSettings {
  const { kind = current?.kind ?? defaults.kind, delivers = current?.delivers ?? defaults.delivers } = request
  const { minGapMs = current?.minGapMs ?? defaults.minGapMs } = request
  if (current && kind !== current.kind) {
    throw new PmqError(
      'conflict',
      `target ${current.name} is of kind ${current.kind}: make another one of kind ${kind}`,
    )
  }
  return { kind, delivers, minGapMs, ...reachOf(kind, request, current, policy) }
}

/** The one thing that says where it is: a URL, a function, or neither. */
function reachOf(
  kind: TargetSettings['kind'],
  request: Omit<PutTargetRequest, 'secret'>,
  current: Target | undefined,
  policy: TargetPolicy,
): Pick<TargetSettings, 'url' | 'functionName'> {
  const { url = current?.url, functionName = current?.functionName } = request
  if (kind !== 'webhook' && request.url !== undefined) throw bad(`url is of webhooks; this target is of kind ${kind}`)
  if (kind !== 'lambda' && request.functionName !== undefined)
    throw bad(`functionName is of targets of kind lambda; this one is of kind ${kind}`)
  if (kind === 'callback') {
    if (policy.network.callbackNetworks.length > 0) return {}
    throw bad('this service calls no PMQ clients back: its operator has named no callbackNetworks')
  }
  if (kind === 'lambda') return { functionName: allowedFunction(functionName, policy) }
  if (url === undefined) throw bad('a webhook needs a url, such as https://example.com/hook')
  const refusal = refuseTargetUrl(url, policy.network)
  if (refusal !== undefined) throw bad(refusal)
  return { url }
}

function allowedFunction(functionName: string | undefined, { functions }: TargetPolicy): string {
  if (functionName !== undefined && functions.includes(functionName)) return functionName
  const given = functionName === undefined ? 'functionName is missing' : `functionName ${functionName} is not allowed`
  const accepted =
    functions.length > 0 ? `accepted are ${functions.join(', ')}` : 'none is: the operator has named no lambdaConsumers'
  throw bad(`${given}; ${accepted}`)
}

/** Whether a target is one for groups of this mode. */
export function refuseForMode({ kind, delivers }: TargetSettings, mode: GroupMode): void {
  if (delivers === 'messages' && kind === 'callback')
    throw bad('PMQ clients are told of messages, and pull them: delivers must be hints')
  if (delivers === 'messages' && mode !== 'claimed') {
    throw new PmqError(
      'conflict',
      `messages are delivered in groups of mode claimed only; this one is ${mode}, and its consumers have its queues`,
    )
  }
  if (mode === 'broadcast' && kind !== 'callback') {
    throw new PmqError(
      'conflict',
      'in a broadcast group each consumer has offsets of its own: only targets of kind callback are told',
    )
  }
}

const bad = (message: string) => new PmqError('bad_request', message)
