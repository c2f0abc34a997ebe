/** Does all at once, and each to its end: what fails keeps no other from it. Rejects then. */
export async function all<T>(things: readonly T[], act: (thing: T) => Promise<void>): Promise<void> {
  const ends = await Promise.allSettled(things.map(act))
  const errors = ends.flatMap(end => (end.status === 'rejected' ? [end.reason] : []))
  if (errors.length === 1) throw errors[0]
  if (errors.length > 1) throw new AggregateError(errors, `${errors.length} of ${things.length} have failed`)
}
