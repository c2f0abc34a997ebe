import { codeOf } from '../code-of.ts'
import type { Core } from '../core.ts'
import type { Audited } from '../protocol/endpoints.ts'
import { errorTable, PmqError } from '../protocol/errors.ts'
import { limits } from '../protocol/limits.ts'
import { StoreError } from '../store.ts'
import { type ActEnd, type AuditEntry, type Caller, entryIdOf } from './records.ts'
import { toAuditText } from './redact.ts'
import { type ActNames, auditedThings } from './views.ts'

/**
 * The audit log is written ahead: that an act was asked for is durable before anything is done, and what became of it is
 * added afterwards. So no act is without an entry, whoever dies when; one that stays `asked` may have been done or not. What
 * was there before and after is read around the act: of acts on the same thing at the same time, one may show what
 * the other did.
 *
 * An act costs two reads of what it is about and two writes, of which the second counts the whole entry: for one of 1 KB
 * before and after, some 5 write units, 0.000003 USD.
 */

export type Act = ActNames & {
  /** Name of the endpoint. */
  name: string
  audits: Audited
  caller: Caller
}

/**
 * Does an act, and records it. Where the entry cannot be written nothing is done. `tell` hears what kept an entry from
 * being finished, of an act that was done: that is no reason to tell its caller that it was not.
 */
export async function recordAct<T>(
  core: Core,
  act: Act,
  perform: () => Promise<T>,
  tell: (entryId: string, error: unknown) => void,
): Promise<T> {
  // It only tells what would happen.
  if ((act.request as { dryRun?: boolean } | undefined)?.dryRun) return perform()
  const entry = await ask(core, act)
  const end = async (outcome: Pick<ActEnd, 'outcome' | 'code'>) => {
    try {
      const after = await view(core, act)
      await core.store.endAuditEntry(entry.entryId, { ...outcome, after, endedAtMs: core.clock.now() })
    } catch (error) {
      tell(entry.entryId, error)
    }
  }
  try {
    const answer = await perform()
    await end({ outcome: 'done' })
    return answer
  } catch (error) {
    const code = codeOf(error)
    await end({ outcome: errorTable[code].status < 500 && code !== 'throttled' ? 'refused' : 'failed', code })
    throw error
  }
}

async function ask(core: Core, act: Act): Promise<AuditEntry> {
  const { name, parameters, request, caller } = act
  const askedAtMs = core.clock.now()
  try {
    const entry: AuditEntry = {
      ...caller,
      entryId: entryIdOf(askedAtMs, core.newId()),
      askedAtMs,
      act: name,
      entity: entityOf(act),
      parameters: toAuditText(parameters),
      ...(request !== undefined && { request: toAuditText(request) }),
      outcome: 'asked',
      before: await view(core, act),
    }
    await core.store.addAuditEntry(entry)
    return entry
  } catch (cause) {
    if (!(cause instanceof StoreError)) throw cause
    throw new PmqError('unavailable', 'nothing was done: the audit log could not be written', { cause })
  }
}

function nameOf({ audits, parameters, request }: Act): string {
  const { of } = auditedThings[audits]
  return parameters[`${of}Name`] ?? String((request as { name?: string } | undefined)?.name ?? '')
}

/** A path can hold anything, of any length. */
const entityOf = (act: Act) =>
  `${auditedThings[act.audits].of}:${nameOf(act).slice(0, limits.maxAnyNameLength).toWellFormed()}`

async function view(core: Core, act: Act): Promise<string> {
  const { parameters, request } = act
  return toAuditText((await auditedThings[act.audits].view(core, { parameters, request, name: nameOf(act) })) ?? null)
}
