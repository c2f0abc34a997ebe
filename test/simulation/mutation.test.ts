import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { mutationName, mutations } from './mutations/mutations.ts'
import { playSeeds } from './pool.ts'

/** Within so many seeds each mistake has to be found. Most are within ten. */
const seeds = 300

suite('the simulation finds out when', { concurrency: 2 }, () => {
  for (const { name, file, search, expected, from = 1 } of mutations) {
    test(name, async t => {
      const source = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
      assert.ok(source.includes(search), `${file} has changed: find out what this mistake would look like now`)

      let played = 0
      let found: string | undefined
      await playSeeds({
        from,
        count: seeds,
        workers: 1,
        preload: new URL('mutations/apply.ts', import.meta.url).href,
        env: { [mutationName]: name },
        onReport({ seed, findings }) {
          played++
          const defect = findings.find(({ property }) => property === 'defect')
          if (defect) throw new Error(defect.text)
          const finding = findings.find(({ property }) => expected.includes(property))
          if (finding) found = `seed ${seed}: ${finding.property}`
          return finding !== undefined
        },
      })
      assert.ok(found, `no seed of ${played} broke ${expected.join(' or ')}`)
      t.diagnostic(`${name}: ${found}, after ${played} seeds`)
    })
  }
})
