/** Where a group's hints or messages are sent, or alarms. */
export type Target = {
  owner: { groupName: string } | 'alarms'
  name: string
  /** `callback`: PMQ's own clients, at the address and port of which each consumer's name tells. */
  kind: 'webhook' | 'lambda' | 'callback'
  /** `messages`: a push group, PMQ's mode 3; only for groups of mode `claimed`, and of the kinds `webhook` and `lambda`. */
  delivers: 'hints' | 'messages'
  url?: string
  functionName?: string
  /** `whsec_…`, of Standard Webhooks; several while they are rotated. They never leave after they were made. */
  secrets: string[]
  createdAtMs: number
  state: TargetState
}

export type TargetState = {
  failures: number
  failingSinceMs?: number
  openUntilMs?: number
  isDisabled: boolean
  disabledBy?: 'operator' | 'failures'
}
