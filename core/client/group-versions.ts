import type { Core } from '../core.ts'
import { findGroup } from './find.ts'

/** The current version of each of these groups that exists. */
export async function groupVersions(core: Core, groupNames: Iterable<string>): Promise<Record<string, number>> {
  const groups = await Promise.all(Array.from(groupNames, name => findGroup(core, name)))
  // Not by assignment: a group may be called `__proto__`.
  return Object.fromEntries(groups.flatMap(group => (group ? [[group.name, group.version]] : [])))
}
