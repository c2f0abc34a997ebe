import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { openApiFile, renderOpenApi } from '../bin/openapi.ts'
import { type Endpoint, endpoints } from '../core/protocol/endpoints.ts'
import { errorTable } from '../core/protocol/errors.ts'

type Parameter = { name: string; in: string }

const text = readFileSync(openApiFile, 'utf8')
const document = JSON.parse(text)

suite('docs/openapi.json', () => {
  test('is what the schemas say now (else: npm run openapi)', () => {
    assert.ok(text === renderOpenApi(), 'docs/openapi.json is stale: npm run openapi')
  })

  for (const [name, { method, path, request, status }] of Object.entries<Endpoint>(endpoints)) {
    test(`describes ${name} with its request, its answer and its errors`, () => {
      const operation = document.paths[path]?.[method.toLowerCase()]
      assert.equal(operation?.operationId, name)
      assert.equal(operation.requestBody !== undefined, request !== undefined && method !== 'GET')
      assert.ok(operation.responses[status ?? 200])
      assert.ok(operation.responses[errorTable.internal.status])
      const namesIn = (place: string) =>
        ((operation.parameters ?? []) as Parameter[]).filter(each => each.in === place).map(({ name }) => name)
      assert.deepEqual(
        namesIn('path').map(name => `{${name}}`),
        path.match(/\{\w+\}/g) ?? [],
      )
      const entries = request && 'entries' in request ? Object.keys(request.entries as object) : []
      assert.deepEqual(namesIn('query'), method === 'GET' ? entries : [])
    })
  }

  test('has what every reference in it refers to', () => {
    for (const [, pointer = ''] of text.matchAll(/"\$ref": "#\/([^"]+)"/g)) {
      const target = pointer.split('/').reduce((node, key) => node?.[key], document)
      assert.ok(target, pointer)
    }
  })

  test('describes every error with its status', () => {
    assert.deepEqual(Object.keys(document.components.responses), Object.keys(errorTable))
  })
})
