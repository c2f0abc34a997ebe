import type { Access } from './iam/access.ts'
import type { Grant, Refusal } from './iam/ledger.ts'

/** What a rehearsal has found. */
export type Report = {
  /** Calls that no policy of the template allows: on AWS they would fail. */
  denied: Refusal[]
  /** Grants that nothing has used so far. */
  unused: Grant[]
  /** Calls that the rehearsal does not have; it has refused them. */
  notRehearsed: { caller: string; what: string; times: number }[]
  /** Invocations that ended with an error. */
  failed: { caller: string; what: string; times: number }[]
}

export function createReport(access: Access) {
  const notRehearsed = createTally()
  const failed = createTally()
  return {
    notRehearsed: notRehearsed.count,
    failed: failed.count,
    read: (): Report => ({
      denied: access.refusals(),
      unused: access.unusedGrants(),
      notRehearsed: notRehearsed.read(),
      failed: failed.read(),
    }),
  }
}

function createTally() {
  const counted = new Map<string, { caller: string; what: string; times: number }>()
  return {
    count(caller: string, what: string): void {
      const key = `${caller} ${what}`
      const { times } = counted.get(key) ?? { times: 0 }
      counted.set(key, { caller, what, times: times + 1 })
    },
    read: () => [...counted.values()],
  }
}

/** The report for people. */
export function explainReport({ denied, unused, notRehearsed, failed }: Report): string {
  const sections: [string, string[]][] = [
    [
      'Calls that the policies do not allow',
      denied.map(({ caller, action, resource, times }) => `${caller}: ${action} on ${resource} (${times}×)`),
    ],
    [
      'Calls that the rehearsal does not know',
      notRehearsed.map(({ caller, what, times }) => `${caller}: ${what} (${times}×)`),
    ],
    ['Invocations that failed', failed.map(({ caller, what, times }) => `${caller}: ${what} (${times}×)`)],
    [
      'Grants that nothing has used',
      unused.map(({ holder, action, resource }) => `${holder}: ${action} on ${resource}`),
    ],
  ]
  return sections
    .map(([title, lines]) =>
      [`${title}: ${lines.length === 0 ? 'none' : lines.length}`, ...lines.map(line => `  ${line}`)].join('\n'),
    )
    .join('\n')
}
