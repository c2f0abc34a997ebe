import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { endProcess, type HostProcess, startHostProcess } from '../demo/processes.ts'
import { runDemo } from './support/run-demo.ts'
import { firstMissing, runExample } from './support/run-example.ts'

const examples = fileURLToPath(new URL('../examples/', import.meta.url))
/** Its text is the README's, which says what it does. */
const first = 'first.ts'

/**
 * Each file directly in `examples/` is a program. `// prints: …` names lines that it prints, in this order and among
 * others. It ends by itself, or as `// ends: at SIGTERM, once it prints: …` says.
 */
suite('the examples', () => {
  let host: HostProcess
  let folder: string

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pmq-examples-'))
    host = await startHostProcess(folder, 30, 0, ['--allow-local-targets'])
  })

  after(async () => {
    await endProcess(host.child, 'SIGTERM')
    await rm(folder, { recursive: true })
  })

  for (const name of readdirSync(examples).filter(name => name.endsWith('.ts') && name !== first)) {
    test(`${name} does what it says`, async () => {
      const source = readFileSync(join(examples, name), 'utf8')
      const expected = Array.from(source.matchAll(/^\/\/ prints: (.*)$/gm), ([, line = '']) => line)
      const [, signal, cue = ''] = /^\/\/ ends: at (SIG\w+), once it prints: (.*)$/m.exec(source) ?? []
      assert.ok(expected.length > 0, 'it does not say what it prints')
      const stop = signal === undefined ? undefined : { signal: signal as NodeJS.Signals, isDue: lineIs(cue) }
      const lines = await runExample(join(examples, name), host.url, stop)
      assert.equal(firstMissing(expected, lines), undefined, `it printed:\n${lines.join('\n')}`)
    })
  }

  test(`${first} publishes, consumes, and ends at Ctrl-C`, async () => {
    const isDue = (lines: readonly string[]) =>
      ['ann', 'bob', 'eve'].every(key => lines.some(line => line.endsWith(`${key}: an order of ${key}`)))
    assert.ok(isDue(await runExample(join(examples, first), host.url, { signal: 'SIGINT', isDue })))
  })
})

const lineIs = (cue: string) => (lines: readonly string[]) => lines.includes(cue)

test('the demo loses nothing when a consumer is killed and another joins', async () => {
  const { published, handled, lost } = await runDemo('run')
  assert.ok(published > 1_000)
  assert.deepEqual({ handled, lost }, { handled: published, lost: 0 })
})
