import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { readRegion, readSnippets } from './support/snippets.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const snippets = globSync(['*.md', 'docs/*.md', 'sdk/README.md'], { cwd: root }).flatMap(file =>
  readSnippets(file, readFileSync(join(root, file), 'utf8')),
)

suite('the programs in the documents', () => {
  for (const { file, line, source, text } of snippets) {
    if (source === undefined) continue
    test(`${file}:${line} shows ${source}, to the letter`, () => {
      const [path = '', region] = source.split('#')
      assert.equal(text, readRegion(readFileSync(join(root, path), 'utf8'), region))
    })
  }

  test('that are copies of nothing are accepted by the compiler: those of other clients, and the first of the SDK', async () => {
    const ofOthers = snippets.filter(
      ({ file, source }) => file === join('docs', 'migrating.md') && source === undefined,
    )
    const ofSdk = snippets.filter(({ file }) => file === join('sdk', 'README.md')).slice(0, 1)
    assert.equal(await compile([...ofOthers, ...ofSdk].map(({ text }) => text)), '')
    assert.deepEqual([ofOthers.length, ofSdk.length], [2, 1])
  })
})

/** What the compiler says of programs, in a folder of their own. */
async function compile(programs: string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'pmq-docs-'))
  try {
    const files = programs.map((_, index) => `${index}.ts`)
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction')
    await writeFile(join(folder, 'package.json'), '{"type":"module"}')
    const config = { extends: join(root, 'tsconfig.json'), include: ['*'], files: ['given.d.ts', ...files] }
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config))
    await writeFile(join(folder, 'given.d.ts'), 'declare function settle(payer: string, amount: string): Promise<void>')
    await Promise.all(programs.map((text, index) => writeFile(join(folder, `${index}.ts`), text)))
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    return await promisify(execFile)(process.execPath, [compiler, '-p', folder]).then(
      () => '',
      (error: { stdout: string }) => error.stdout,
    )
  } finally {
    await rm(folder, { recursive: true })
  }
}
