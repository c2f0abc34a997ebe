import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { checkHistory } from './check.ts'
import { runModel, scripts } from './model.ts'
import { mutate } from './mutations/mutation.ts'
import { groupMutations } from './mutations/of-groups.ts'
import { logMutations } from './mutations/of-log.ts'
import { explain } from './violation.ts'

const numRuns = Number(process.env.CHECKER_RUNS ?? 100)

test('a queue that keeps its promises is never accused', () => {
  fc.assert(
    fc.property(scripts, script => {
      assert.equal(explain(checkHistory(runModel(script))), '')
    }),
    { numRuns },
  )
})

suite('a history is caught in which', () => {
  for (const mutation of [...logMutations, ...groupMutations]) {
    test(mutation.name, () => {
      let applied = 0
      fc.assert(
        fc.property(scripts, fc.nat(), (script, pick) => {
          const broken = mutate(runModel(script), mutation, pick)
          if (!broken) return
          applied++
          const found = checkHistory(broken)
          const isNamed = found.some(({ property }) => mutation.expected.includes(property))
          assert.ok(isNamed, `expected ${mutation.expected.join(' or ')}, found: ${explain(found) || 'nothing'}`)
        }),
        { numRuns },
      )
      assert.ok(applied > numRuns / 10, `could be done in ${applied} of ${numRuns} histories only`)
    })
  }
})
