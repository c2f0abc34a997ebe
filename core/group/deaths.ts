import type { QueueOffset, Trial } from '../model.ts'
import type { Commit } from '../store.ts'

/**
 * A message may end the process of whoever handles it. Nobody can say so then; but that its owner was lost is noticed, and
 * counted in the write that takes the queue from it (`deaths`). The next owner works *carefully*: it hands out one message
 * at a time, and says before each which one that is (`trial`). If it is lost as well, that message is the *suspect*: it
 * was alone in the hands of one that was lost, and counts as failed. Whoever gets on with the queue ends the count. How
 * often the same one has been that goes by itself: a queue may lose owners who never came to it.
 *
 * An owner is lost that was given up, that another one of its `instanceId` has replaced before it stopped, or that let its
 * lease end: none that left, was late, or whose queue was reset.
 */

/** What the death of a queue's owner adds to its record. */
export const oneMoreDeath = ({ deaths, offsetVersion }: QueueOffset): Pick<QueueOffset, 'deaths'> => ({
  deaths: { count: (deaths?.count ?? 0) + 1, offsetVersion },
})

/** What is left of deaths and of the trial after a commit that was not refused. */
export function careAfter(
  { deaths, trial }: QueueOffset,
  commit: Commit,
  hasAdvanced: boolean,
): Pick<QueueOffset, 'deaths' | 'trial'> {
  const next = nextTrial(hasAdvanced ? undefined : trial, commit)
  return { ...(deaths && !hasAdvanced && { deaths }), ...(next && { trial: next }) }
}

function nextTrial(present: Trial | undefined, commit: Commit): Trial | undefined {
  const { trialOffset, trialFailures: failures = 0, offsetVersion, release } = commit
  // Who releases has nothing in hand; what a lost one had was not its own.
  if (release) return isOwnTrial(present, offsetVersion) ? undefined : present
  if (trialOffset === undefined) return present
  return trialOffset === 0 ? undefined : { offset: trialOffset, offsetVersion, failures }
}

export const isOwnTrial = (trial: Trial | undefined, offsetVersion: number) => trial?.offsetVersion === offsetVersion

export type DeathsView = { deaths?: number; suspectOffset?: number; suspectFailures?: number }

/**
 * What others are told of a queue's deaths. The suspect is what an owner had on trial that was lost; of one that was not,
 * or is the present one, it says nothing.
 */
export function viewDeaths({ deaths, trial, offset }: Pick<QueueOffset, 'deaths' | 'trial' | 'offset'>): DeathsView {
  if (deaths === undefined) return {}
  const isSuspect = trial !== undefined && trial.offsetVersion <= deaths.offsetVersion && trial.offset > offset
  return {
    deaths: deaths.count,
    ...(isSuspect && { suspectOffset: trial.offset, suspectFailures: trial.failures + 1 }),
  }
}
