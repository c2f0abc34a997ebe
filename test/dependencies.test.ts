import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')

type Manifest = { [kind in 'dependencies' | 'devDependencies' | 'optionalDependencies' | 'peerDependencies']?: object }

test('every dependency has its sentence of reason, and every sentence its dependency', () => {
  const manifests = ['package.json', 'sdk/package.json'].map(path => JSON.parse(read(path)) as Manifest)
  const named = manifests.flatMap(manifest =>
    (['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'] as const).flatMap(kind =>
      Object.keys(manifest[kind] ?? {}),
    ),
  )
  const rows = read('docs/dependencies.md')
    .split('\n')
    .filter(line => line.startsWith('| `'))
  const described = rows.flatMap(row => [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(match => match[1]))
  assert.deepEqual([...new Set(described)].sort(), [...new Set(named)].sort())
})
