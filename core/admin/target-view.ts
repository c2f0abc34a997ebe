import type { Target, TargetState } from '../notify/target.ts'
import type { TargetView } from '../protocol/targets.ts'

/** A target as its operator sees it: without what its secrets are. */
export function viewTarget(target: Target): TargetView {
  const { owner, name, kind, delivers, url, functionName, minGapMs, createdAtMs, secrets, state } = target
  return {
    name,
    kind,
    delivers: owner === 'alarms' ? 'alarms' : delivers,
    ...(url !== undefined && { url }),
    ...(functionName !== undefined && { functionName }),
    minGapMs,
    createdAtMs,
    secrets: secrets.map(({ secretId, createdAtMs }) => ({ secretId, createdAtMs })),
    state: viewState(state),
  }
}

function viewState(state: TargetState): TargetView['state'] {
  const { isDisabled, failures, failingSinceMs, openUntilMs, disabledBy, disabledAtMs, sentAtMs } = state
  return {
    status: isDisabled ? 'disabled' : failures > 0 ? 'failing' : 'active',
    failures,
    ...(failingSinceMs !== undefined && { failingSinceMs }),
    ...(openUntilMs !== undefined && { nextTrialAtMs: openUntilMs }),
    ...(disabledBy && { disabledBy }),
    ...(disabledAtMs !== undefined && { disabledAtMs }),
    ...(sentAtMs !== undefined && { lastSentAtMs: sentAtMs }),
  }
}
