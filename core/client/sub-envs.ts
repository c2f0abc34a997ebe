import type { Core } from '../core.ts'
import { noSubEnv } from '../group/copy-names.ts'
import type { Group } from '../model.ts'

/**
 * By group, the sub-environments that have consumers in it: a PMQ client without one also handles the messages of those
 * that have none. A copy is asked about under its own name, its origin's map is what it gets.
 */
export async function readSubEnvMap(core: Core, groups: readonly Group[]): Promise<Record<string, string[]>> {
  const names = new Set(groups.map(({ name, origin }) => (origin && 'subEnv' in origin ? origin.groupName : name)))
  const entries = await Promise.all(
    Array.from(names, async name => [name, (await core.subEnvs.get(name)) ?? []] as const),
  )
  return Object.fromEntries(entries)
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
