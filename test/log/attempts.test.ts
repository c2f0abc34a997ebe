import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Attempts, exploreAttempts } from './attempts.ts'

/** What the queue holds, and what A and B, whose attempts meet, remember of it. C is another container. */
const states: Record<string, NonNullable<Attempts['before']>> = {
  'an empty queue': [],
  'a queue whose end both must look for': [{ by: 'C', count: 2 }],
  'a queue whose end the first container remembers': [{ by: 'A', count: 2 }],
  'a queue whose end the second container remembers': [{ by: 'B', count: 2 }],
  'a queue whose end both remember from earlier': [
    { by: 'A', count: 2 },
    { by: 'B', count: 1 },
    { by: 'C', count: 1 },
    { by: 'C', count: 3 },
  ],
}

const casts = {
  'two containers and another writer': { first: 'A', second: 'B', others: ['C'] },
  'two containers, of which the first has another append': { first: 'A', second: 'B', others: ['A'] },
  'two containers, of which the second has another append': { first: 'A', second: 'B', others: ['B'] },
  'one container, and a writer in another': { first: 'A', second: 'A', others: ['C'] },
  'one container with another append': { first: 'A', second: 'A', others: ['A'] },
}

/** With doubt there are many more orders: for each cast the state in which most can happen in a second. */
const inDoubt: Record<keyof typeof casts, keyof typeof states> = {
  'two containers and another writer': 'an empty queue',
  'two containers, of which the first has another append': 'a queue whose end both remember from earlier',
  'two containers, of which the second has another append': 'an empty queue',
  'one container, and a writer in another': 'a queue whose end both remember from earlier',
  'one container with another append': 'a queue whose end both remember from earlier',
}

describe('two attempts of one publish, in every order of their operations,', () => {
  for (const [cast, who] of Object.entries(casts)) {
    test(`are stored once by ${cast}`, async t => {
      for (const [state, before] of Object.entries(states)) {
        const { plays } = await exploreAttempts({ ...who, before })
        t.diagnostic(`${plays} plays on ${state}`)
        assert.ok(plays > 1)
      }
    })
  }

  for (const [cast, state] of Object.entries(inDoubt)) {
    test(`are stored once by ${cast} where one put is in doubt and may take effect later`, async () => {
      const { first, second, others } = casts[cast as keyof typeof casts]
      await exploreAttempts({ first, second, others, before: states[state] ?? [], doubts: 1 })
    })
  }

  test('are stored once where a walk sees one of two batches that are put while it looks', async () => {
    const before = states['a queue whose end both remember from earlier'] ?? []
    await exploreAttempts({ first: 'A', second: 'B', others: ['C'], before, torn: 2 })
  })

  test('are stored once by one container over a store that appends in order and shows what is durable', async () => {
    for (const before of Object.values(states)) {
      await exploreAttempts({ first: 'A', second: 'A', others: ['A'], before, appendsInOrder: true })
    }
  })
})
