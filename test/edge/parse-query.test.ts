import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { APIGatewayProxyEventV2 } from 'aws-lambda'
import * as v from 'valibot'
import { type Endpoint, endpoints } from '../../core/protocol/endpoints.ts'
import type { PmqError } from '../../core/protocol/errors.ts'
import { name, wholeNumber } from '../../core/protocol/fields.ts'
import { parseQuery } from '../../functions/edge/parse-query.ts'

const request = v.strictObject({
  name,
  limit: v.optional(wholeNumber(1, 10), 5),
  isOpen: v.optional(v.boolean()),
  text: v.optional(v.string()),
})
const endpoint: Endpoint = { ...endpoints.listTopics, request }
const parse = (rawQueryString: string) =>
  parseQuery(endpoint, { rawQueryString } as APIGatewayProxyEventV2).request as Record<string, unknown>

suite('the query parameters of a GET', () => {
  test('are texts, numbers and booleans, as the schema says; what is left out has its default', () => {
    assert.deepEqual(parse('name=a&limit=7&isOpen=true&text=7'), { name: 'a', limit: 7, isOpen: true, text: '7' })
    assert.deepEqual(parse('name=a&isOpen=false'), { name: 'a', limit: 5, isOpen: false })
  })

  test('are decoded as a form is', () => {
    assert.equal(parse('name=a&text=100%25+%C3%A4%26%3D').text, '100% ä&=')
  })

  test('are not read by an endpoint that has none', () => {
    assert.equal(
      parseQuery(endpoints.listTopics, { rawQueryString: 'a=b' } as APIGatewayProxyEventV2).request,
      undefined,
    )
  })

  for (const [query, message] of [
    ['', 'name: is required'],
    ['name=a%20b', 'name: must be 1 to 100 characters of'],
    ['name=a&limit=0', 'limit: expected >=1, not 0'],
    ['name=a&limit=-3', 'limit: expected >=1, not -3'],
    ['name=a&limit=ten', 'limit: expected number'],
    ['name=a&limit=', 'limit: expected number'],
    ['name=a&limit=1e1', 'limit: expected number'],
    ['name=a&limit=9007199254740993', 'limit: expected a whole number'],
    ['name=a&isOpen=1', 'isOpen: expected boolean'],
    ['name=a&limits=3', 'limits: no such field'],
    ['name=a&name=b', 'name: is given twice'],
  ] as const) {
    test(`are refused as ${query}: ${message}`, () => {
      assert.throws(
        () => parse(query),
        (error: PmqError) => error.code === 'bad_request' && error.message.startsWith(message),
      )
    })
  }
})
