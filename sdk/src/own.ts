/**
 * What a map has under a name, and not what every object has: a group or a topic may be called `constructor`, and
 * `__proto__` as well.
 */
export const ownOf = <T>(map: Readonly<Record<string, T>> | null | undefined, name: string): T | undefined =>
  map && Object.hasOwn(map, name) ? map[name] : undefined
