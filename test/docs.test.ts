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

  test('docs/migrating.md shows programs of other clients that their types accept', async () => {
    const foreign = snippets.filter(({ file, source }) => file === join('docs', 'migrating.md') && source === undefined)
    const folder = await mkdtemp(join(tmpdir(), 'pmq-docs-'))
    const names = foreign.map((_, index) => `${index}.ts`)
    const compilerOptions = {
      strict: true,
      skipLibCheck: true,
      noEmit: true,
      target: 'ES2024',
      module: 'NodeNext',
      types: ['node'],
    }
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction')
    await writeFile(join(folder, 'package.json'), '{"type":"module"}')
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['given.d.ts', ...names] }))
    await writeFile(
      join(folder, 'given.d.ts'),
      'declare function settle(payer: string, amount: string): Promise<void>\n',
    )
    await Promise.all(foreign.map(({ text }, index) => writeFile(join(folder, `${index}.ts`), text)))
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    const complaints = await promisify(execFile)(process.execPath, [compiler, '-p', folder]).then(
      () => '',
      (error: { stdout: string }) => error.stdout,
    )
    await rm(folder, { recursive: true })
    assert.equal(complaints, '')
    assert.ok(foreign.length > 0)
  })
})
