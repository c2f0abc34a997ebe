import type { Core } from '../core.ts'
import { noSubEnv } from '../group/copy-names.ts'
import type { Group } from '../model.ts'

/**
 * By group, the sub-environments that have consumers in it: a PMQ client without one also handles the messages of those
 * that have none. A copy is asked about under its own name, the map is that of the group that all are copies of.
 */
export async function readSubEnvMap(core: Core, groups: readonly Group[]): Promise<Record<string, string[]>> {
  const names = new Set(await Promise.all(groups.map(group => findOriginal(core, group))))
  const entries = await Promise.all(
    Array.from(names, async name => [name, (await core.subEnvs.get(name)) ?? []] as const),
  )
  return Object.fromEntries(entries)
}

/** A consumer's copy may be one of a sub-environment's copy. */
async function findOriginal(core: Core, { name, origin }: Group): Promise<string> {
  if (origin === undefined) return name
  if ('subEnv' in origin) return origin.groupName
  const source = await core.groups.get(origin.groupName)
  return source ? findOriginal(core, source) : origin.groupName
}

/** The sub-environments whose consumers are members of a group or of its copies. */
export async function readSubEnvs(core: Pick<Core, 'store'>, groupName: string): Promise<string[] | undefined> {
  const origin = await core.store.readGroup(groupName)
  if (origin === undefined) return undefined
  const copies = origin.copies.filter(copy => copy.subEnv !== undefined)
  const read = await Promise.all(copies.map(({ copyName }) => core.store.readGroup(copyName)))
  const busy = copies.filter((_, i) => (read[i]?.members.length ?? 0) > 0).map(copy => copy.subEnv ?? '')
  return origin.members.length > 0 ? [noSubEnv, ...busy] : busy
}
