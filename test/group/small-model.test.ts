import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oneMoreDeath } from '../../core/group/deaths.ts'
import { messages, problemOf, type State, type Step, start, stepsFrom } from './small-model.ts'

type Visit = { from: string | undefined; label: string }

/** Goes through every state that can be reached; returns them, or the shortest way to a problem. */
function explore(stepsOf: (state: State) => Step[]): { states: Map<string, State>; problem?: string } {
  const states = new Map([[JSON.stringify(start), start]])
  const visits = new Map<string, Visit>([[JSON.stringify(start), { from: undefined, label: 'the start' }]])
  const wayTo = (key: string): string => {
    const way: string[] = []
    for (let at: string | undefined = key; at !== undefined; at = visits.get(at)?.from)
      way.unshift(visits.get(at)?.label ?? '')
    return way.join('\n  ')
  }
  for (const [key, state] of states) {
    for (const { label, next, problem } of stepsOf(state)) {
      const nextKey = JSON.stringify(next)
      const found = problem ?? problemOf(next)
      if (!visits.has(nextKey)) visits.set(nextKey, { from: key, label })
      if (found) return { states, problem: `${found}:\n  ${wayTo(key)}\n  ${label}` }
      if (!states.has(nextKey)) states.set(nextKey, next)
    }
  }
  return { states }
}

test('every order of events keeps the promises on owners, commits and clean hand-overs', () => {
  const { states, problem } = explore(stepsFrom)
  assert.equal(problem, undefined)
  assert.ok(states.size > 10_000, `only ${states.size} states were reached`)
})

test('from every state the messages can be handled and committed to the end', () => {
  const { states } = explore(stepsFrom)
  const isDone = (state: State) => state.queues.every((queue, q) => queue.offset === messages[q])
  const someoneLives = (state: State) =>
    state.consumers.some(consumer => consumer.isRunning && (consumer.isMember || state.mayJoin))
  // Backwards from the states that are done, over steps that need neither a death nor a fault.
  const before = new Map<string, string[]>()
  for (const [key, state] of states) {
    for (const { next } of stepsFrom(state)) {
      const nextKey = JSON.stringify(next)
      const known = before.get(nextKey)
      if (known) known.push(key)
      else before.set(nextKey, [key])
    }
  }
  const reaching = new Set([...states].filter(([, state]) => isDone(state)).map(([key]) => key))
  for (const key of reaching) for (const earlier of before.get(key) ?? []) reaching.add(earlier)
  const stuck = [...states].filter(([key, state]) => someoneLives(state) && !reaching.has(key))
  assert.deepEqual(stuck.slice(0, 1), [])
})

test('would find a release that hands over before the owner has stopped', () => {
  const hasty = (state: State): Step[] =>
    stepsFrom(state).map(step => {
      if (!/begins|when released/.test(step.label) || !/moves|makes/.test(step.label)) return step
      // The next owner owns at once, and nobody is fenced.
      const queues = step.next.queues.map(({ nextConsumerId, leavingSinceMs: _, ...queue }) =>
        nextConsumerId === undefined ? queue : { ...queue, consumerId: nextConsumerId },
      )
      return { ...step, next: { ...step.next, queues } }
    })
  assert.match(explore(hasty).problem ?? '', /P4|P5|P6/)
})

test('would find an owner that is late, and is counted as one that was lost', () => {
  const strict = (state: State): Step[] =>
    stepsFrom(state).map(step => {
      if (!/out of patience/.test(step.label)) return step
      const queues = step.next.queues.map(queue => ({ ...queue, ...oneMoreDeath(queue) }))
      return { ...step, next: { ...step.next, queues } }
    })
  assert.match(explore(strict).problem ?? '', /nobody was lost/)
})
