import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { importsOf, judge } from './support/imports.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const sourceFile = /\.[cm]?[jt]sx?$/
const ignored = new Set(['node_modules', 'cdk.out', 'dist', 'coverage'])

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap(entry => {
    if (entry.name.startsWith('.') || ignored.has(entry.name)) return []
    const path = join(folder, entry.name)
    return entry.isDirectory() ? sources(path) : sourceFile.test(entry.name) ? [path] : []
  })
}

test('the imports of all sources point one way, and the core has neither clock nor chance nor settings', () => {
  const paths = sources('')
  assert.ok(paths.includes(join('core', 'store.ts')), 'the sources were not found')
  const found = paths.flatMap(path => judge(path.split(sep).join('/'), readFileSync(join(root, path), 'utf8')))
  assert.deepEqual(found, [])
})

suite('the judge', () => {
  const forbidden: [string, string][] = [
    ['core/log/append.ts', "import { openStore } from '../../store/dynamo/store.ts'"],
    ['core/log/append.ts', "import type { Item } from '@aws-sdk/client-dynamodb'"],
    ['core/log/append.ts', "import { readFile } from 'node:fs'"],
    ['core/log/append.ts', "import { hash, randomUUID } from 'node:crypto'"],
    ['core/log/append.ts', "export * from '../../functions/edge/env.ts'"],
    ['core/log/append.ts', "const { openStore } = await import('../../store/sqlite.ts')"],
    ['core/log/append.ts', 'const store = await import(name)'],
    ['core/log/append.ts', "import '../../store/sqlite.ts'"],
    ['core/log/append.ts', 'const table = process.env.PMQ_LOG_TABLE'],
    ['core/log/append.ts', 'const now = Date.now()'],
    ['core/log/append.ts', 'const now = new Date()'],
    ['core/log/append.ts', 'const delay = Math.random() * 10'],
    ['core/log/append.ts', 'setImmediate(append)'],
    ['core/log/append.ts', 'await new Promise(done => setTimeout(done, 10))'],
    ['core/protocol/publish.ts', "import { append } from '../log/append.ts'"],
    ['core/protocol/publish.ts', "import { LRUCache } from 'lru-cache'"],
    ['store/dynamo/store.ts', "import { handler } from '../../functions/publish.ts'"],
    ['functions/publish.ts', "import { openStore } from '../store/sqlite/store.ts'"],
    ['functions/publish.ts', "import { PmqStack } from '../lib/pmq-stack.ts'"],
    ['functions/edge/push.ts', "import { createQueueWorker } from '../../sdk/src/worker/queue-worker.ts'"],
    ['sdk/src/client.ts', "import type { Batch } from '../../core/model.ts'"],
    ['sdk/src/client.ts', "import * as v from 'valibot'"],
    ['lib/pmq.ts', "import { keys } from '../store/keys.ts'"],
    ['lib/pmq.ts', "import { handler } from '../functions/publish.ts'"],
    ['console/main.ts', "import { keys } from '../store/keys.ts'"],
    ['helpers/time.ts', ''],
  ]
  for (const [path, source] of forbidden) {
    test(`refuses in ${path}: ${source || 'a file outside of every layer'}`, () => {
      assert.equal(judge(path, source).length, 1)
    })
  }

  const allowed: [string, string][] = [
    ['core/log/append.ts', "import type { Store } from '../store.ts'\nimport { hash } from 'node:crypto'"],
    ['core/log/append.ts', '// Date.now() and setTimeout are not for us\nconst at = new Date(nowMs)'],
    ['core/log/append.ts', "throw new Error('not Date.now(), nor process.env')"],
    ['core/log/append.ts', 'const zstdLevel = Math.max(1, options.level)'],
    ['core/protocol/clock.ts', 'export const now = () => Date.now()'],
    ['store/dynamo/store.ts', "import type { Store } from '../../core/store.ts'\nimport { keys } from '../keys.ts'"],
    ['functions/publish.ts', "import { openDynamoStore } from '../store/dynamo/store.ts'"],
    ['functions/edge/push.ts', "import { lambdaConsumer } from '../../sdk/src/lambda/lambda-consumer.ts'"],
    ['functions/edge/push.ts', "import type { Message } from '../../sdk/src/index.ts'"],
    ['sdk/src/client.ts', "import type { PublishRequest } from '../../core/protocol/publish.ts'"],
    [
      'lib/pmq.ts',
      "import { envNames } from '../functions/edge/env.ts'\nimport { Table } from 'aws-cdk-lib/aws-dynamodb'",
    ],
    ['bin/pmq.ts', "import { openSqliteStore } from '../store/sqlite/store.ts'"],
  ]
  for (const [path, source] of allowed) {
    test(`accepts in ${path}: ${source.replaceAll('\n', '; ')}`, () => {
      assert.deepEqual(judge(path, source), [])
    })
  }

  test('reads every form of import, over several lines, and none in a comment', () => {
    const source = `
      import a from './a.ts'
      import {
        type B,
        b,
      } from "./b.ts"
      export * as c from './c.ts'
      import './d.ts'
      type E = import('./e.ts').E
      const f = require('./f.cjs')
      // import g from './g.ts'
      /* import h from './h.ts' */
      const url = 'https://example.com' // import i from './i.ts'
    `
    const specifiers = importsOf(source).map(({ specifier }) => specifier)
    assert.deepEqual(specifiers.sort(), ['./a.ts', './b.ts', './c.ts', './d.ts', './e.ts', './f.cjs'])
  })
})
