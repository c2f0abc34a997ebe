import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { envNames } from '../../functions/edge/env.ts'
import { bundle } from './synthesize.ts'

// Far from `node_modules`: a bundle that loads here carries all that it needs.
const outdir = mkdtempSync(join(tmpdir(), 'pmq-bundle-'))
after(() => rmSync(outdir, { recursive: true }))

/** Loads a bundle as Lambda does, and says what it exports and how long it took. */
const load = `
  const start = performance.now()
  const { handler } = require(process.argv[1])
  console.log(JSON.stringify({ handler: typeof handler, ms: Math.round(performance.now() - start) }))
  process.exit()
`

for (const { name, folder } of bundle(outdir)) {
  test(`the bundle of ${name} is one file that loads by itself and exports a handler`, t => {
    assert.deepEqual(readdirSync(folder), ['index.js'])
    const env = {
      [envNames.logTable]: 'log',
      [envNames.serviceName]: 'Pmq',
      [envNames.registryTable]: 'registry',
      [envNames.bus]: 'bus',
      [envNames.jobQueue]: 'https://sqs.eu-central-1.amazonaws.com/1/jobs',
      AWS_REGION: 'eu-central-1',
    }
    const output = execFileSync(process.execPath, ['--eval', load, join(folder, 'index.js')], {
      env,
      cwd: folder,
      encoding: 'utf8',
    })
    const { handler, ms } = JSON.parse(output)
    t.diagnostic(`${name}: ${Math.round(statSync(join(folder, 'index.js')).size / 1024)} KB, loads in ${ms} ms`)
    assert.equal(handler, 'function')
  })
}
