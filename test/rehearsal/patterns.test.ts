import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { parsePattern } from '../../rehearsal/events/pattern.ts'
import { parseTransform } from '../../rehearsal/events/transform.ts'
import { matchesPattern } from '../../rehearsal/iam/patterns.ts'

suite('an event pattern', () => {
  const event = { source: 'pmq', 'detail-type': 'GroupChanged', detail: { name: 'orders', count: 3, tags: ['a', 'b'] } }
  const cases: [string, boolean, object][] = [
    ['fits by a value', true, { source: ['pmq'] }],
    ['fits by one of several', true, { 'detail-type': ['X', 'GroupChanged'] }],
    ['does not fit where no value does', false, { source: ['aws.ec2'] }],
    ['needs all of its fields', false, { source: ['pmq'], detail: { name: ['others'] } }],
    ['looks into fields', true, { detail: { name: ['orders'] } }],
    ['tells numbers from texts', false, { detail: { count: ['3'] } }],
    ['fits a list by any of its values', true, { detail: { tags: ['b'] } }],
    ['fits by a prefix', true, { detail: { name: [{ prefix: 'ord' }] } }],
    ['does not fit by another prefix', false, { detail: { name: [{ prefix: 'Ord' }] } }],
    ['fits where a field exists', true, { detail: { count: [{ exists: true }] } }],
    ['does not fit where it does not', false, { detail: { other: [{ exists: true }] } }],
    ['fits where a field is to be absent', true, { detail: { other: [{ exists: false }] } }],
    ['does not fit what is not there', false, { detail: { other: ['x'] } }],
    ['does not fit a field within what is not there', false, { other: { name: ['x'] } }],
  ]
  for (const [what, expected, pattern] of cases) {
    test(`${what}: ${JSON.stringify(pattern)}`, () => assert.equal(parsePattern(pattern, 'Rule')(event), expected))
  }

  for (const pattern of [
    { source: [{ suffix: 'x' }] },
    { $or: [{ source: ['a'] }] },
    { source: [{ 'anything-but': 'a' }] },
  ]) {
    test(`that is not known is refused: ${JSON.stringify(pattern)}`, () => {
      assert.throws(() => parsePattern(pattern, 'Rule'), /the rehearsal does not know .* in the event pattern of Rule/)
    })
  }
})

suite('the input of a target', () => {
  const event = { detail: { name: 'a "quoted" name', count: 3 } }
  const transformer = (InputTemplate: string) => ({
    InputTransformer: { InputPathsMap: { name: '$.detail.name', count: '$.detail.count' }, InputTemplate },
  })
  const cases: [string, Record<string, unknown>, string][] = [
    ['is the event', {}, JSON.stringify(event)],
    ['is a constant', { Input: '{"a":1}' }, '{"a":1}'],
    ['is a part', { InputPath: '$.detail.count' }, '3'],
    ['is a text with parts in it', transformer('"<count> of <name>"'), '"3 of a \\"quoted\\" name"'],
    ['is an object with parts in it', transformer('{"n":<count>,"t":<name>}'), '{"n":3,"t":"a \\"quoted\\" name"}'],
  ]
  for (const [what, target, expected] of cases) {
    test(what, () => assert.equal(parseTransform(target, 'Rule')(event), expected))
  }

  test('by a path that is not known is refused', () => {
    assert.throws(() => parseTransform({ InputPath: '$.detail[0]' }, 'Rule'), /the path \$\.detail\[0\] of Rule/)
  })
})

test('wildcards match as a regular expression of the same meaning does', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', ':'), maxLength: 8 })
  const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '*', '?'), maxLength: 6 })
  fc.assert(
    fc.property(pattern, text, (pattern, text) => {
      const expected = new RegExp(`^${pattern.replaceAll('*', '.*').replaceAll('?', '.')}$`).test(text)
      assert.equal(matchesPattern(pattern, text), expected)
    }),
    { numRuns: 2_000 },
  )
})
