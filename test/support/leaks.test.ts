import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

/** Runs a file of `test/fixtures/leaks` as `npm test` runs a test file. Those have no `.test` in their names. */
function run(fixture: string): Promise<{ passed: boolean; output: string; closingLine: string | undefined }> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const file = fileURLToPath(new URL(`../fixtures/leaks/${fixture}.ts`, import.meta.url))
  const leaks = new URL('leaks.ts', import.meta.url).href
  const reporter = new URL('reporter.ts', import.meta.url).href
  const args = ['--test', `--import=${leaks}`, `--test-reporter=${reporter}`, file]
  return new Promise(resolve => {
    execFile(process.execPath, args, { env, timeout: 60_000 }, (error, output) => {
      resolve({ passed: error === null, output, closingLine: output.trimEnd().split('\n').at(-1) })
    })
  })
}

for (const [fixture, left] of [
  ['server', '1 server'],
  ['timer', '1 timer'],
  ['child-process', '1 child process'],
  ['worker', '1 worker'],
] as const) {
  test(`fails a file that leaves a ${fixture.replace('-', ' ')} running, and says so`, async () => {
    const { passed, output, closingLine } = await run(fixture)
    assert.equal(passed, false, output)
    assert.match(output, new RegExp(`${fixture}\\.ts has left running: .*${left}`))
    assert.equal(closingLine, '1 passed, 1 failed')
  })
}

test('passes a file that stops in its own hooks what it has started', async () => {
  const { passed, output, closingLine } = await run('nothing')
  assert.equal(passed, true, output)
  assert.equal(closingLine, '2 passed, 0 failed')
})

test('ends the report with the counts of passed, failed and skipped tests', async () => {
  const { passed, closingLine } = await run('failure')
  assert.equal(passed, false)
  assert.equal(closingLine, '0 passed, 1 failed, 1 skipped')
})
