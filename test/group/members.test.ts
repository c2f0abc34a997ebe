import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createIpCheck, parseIpRange, replacedMembers, selectMembers } from '../../core/group/members.ts'
import type { Member } from '../../core/model.ts'
import { groupOf, memberOf } from '../store/contract.ts'

const check = (allowedIps: string[], deniedIps: string[] = []) =>
  createIpCheck({ allowedIps, deniedIps, maxConsumers: 0 })

describe('an address', () => {
  const onList: [string, string][] = [
    ['10.0.0.1', '10.0.0.1'],
    ['10.0.0.1', '10.0.0.0/8'],
    ['10.255.255.255', '10.0.0.0/8'],
    ['10.0.0.1', '10.0.0.1/32'],
    ['10.1.2.3', '10.9.9.9/8'],
    ['203.0.113.9', '0.0.0.0/0'],
    ['::1', '::1'],
    ['2001:db8::17', '2001:db8::/32'],
    ['2001:0DB8:0:0:0:0:0:17', '2001:db8::17'],
    ['fe80::1%eth0', 'fe80::/10'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.0/8'],
    ['::ffff:a00:1', '10.0.0.0/8'],
    ['0:0:0:0:0:FFFF:10.0.0.1', '10.0.0.0/8'],
    ['10.0.0.1', '::ffff:10.0.0.1'],
    ['10.0.0.1', '::ffff:10.0.0.0/104'],
  ]
  for (const [ip, entry] of onList) {
    test(`${ip} is on the list ${entry}`, () => {
      assert.equal(check([entry])(ip), true)
      assert.equal(check([], [entry])(ip), false)
      assert.equal(check([entry], [entry])(ip), false, 'who is denied is not allowed')
    })
  }

  const notOnList: [string, string][] = [
    ['10.0.0.11', '10.0.0.1'],
    ['110.0.0.1', '10.0.0.1'],
    ['10.0.0.1', '10.0.0.11'],
    ['11.0.0.1', '10.0.0.0/8'],
    ['10.0.0.128', '10.0.0.0/25'],
    ['::ffff:11.0.0.1', '10.0.0.0/8'],
    ['::10.0.0.1', '10.0.0.0/8'],
    ['2001:db9::1', '2001:db8::/32'],
    ['2001:db8::1', '0.0.0.0/0'],
    ['fe80::1%eth0', '10.0.0.0/8'],
    ['', '10.0.0.0/8'],
    ['localhost', '10.0.0.0/8'],
    ['10.0.0', '10.0.0.0/8'],
    ['10.0.0.1 ', '10.0.0.1'],
    ['10.0.0.1:8080', '10.0.0.1'],
    ['010.0.0.1', '10.0.0.1'],
    ['10.0.0.1/8', '10.0.0.0/8'],
  ]
  for (const [ip, entry] of notOnList) {
    test(`${JSON.stringify(ip)} is not on the list ${entry}`, () => {
      assert.equal(check([entry])(ip), false)
      assert.equal(check([], [entry])(ip), true)
    })
  }

  test('is on any of several entries', () => {
    const isAble = check(['10.0.0.0/8', '192.168.0.0/16'], ['10.1.0.0/16', '192.168.7.7'])
    const able = ['10.2.0.1', '192.168.7.8', '10.1.0.1', '192.168.7.7', '172.16.0.1'].filter(isAble)
    assert.deepEqual(able, ['10.2.0.1', '192.168.7.8'])
  })

  test('may be anything where there are no lists', () => {
    for (const ip of ['10.0.0.1', '::1', '', 'nonsense']) assert.equal(check([])(ip), true)
  })
})

describe('an entry of a list', () => {
  for (const entry of ['10.0.0.1', '10.0.0.0/0', '10.0.0.0/32', '::', '::/0', 'fe80::/128', '::ffff:10.0.0.1/104']) {
    test(`may be ${entry}`, () => assert.ok(parseIpRange(entry)))
  }
  for (const entry of [
    '',
    '/',
    '10.0.0',
    '10.0.0.256',
    '10.0.0.1/',
    '10.0.0.1/33',
    '10.0.0.1/-1',
    '10.0.0.1/8/8',
    '10.0.0.1/0x8',
    '10.0.0.1/ 8',
    '10.0.0.1/1e1',
    '10.0.0.1-10.0.0.9',
    '10.0.0.*',
    '::1/129',
    'host.example',
    'fe80::1%eth0',
    'fe80::1%eth0/64',
  ]) {
    test(`may not be ${JSON.stringify(entry)}`, () => assert.equal(parseIpRange(entry), undefined))
  }
})

const member = (consumerId: number, fields: Partial<Member> = {}): Member => ({
  ...memberOf('g', consumerId),
  joinedAtMs: consumerId,
  ...fields,
})
const at = (instanceId: string, predecessors?: number[]) => ({ instanceId, ...(predecessors && { predecessors }) })
const select = (members: Member[], maxConsumers = 0) =>
  selectMembers({ group: groupOf('g', { maxConsumers }), members }).map(({ consumerId }) => consumerId)

describe('the members that may be given queues', () => {
  test('are all of them', () => assert.deepEqual(select([member(1), member(2)]), [1, 2]))

  test('are as many as the group takes, the ones that joined first; of those that joined together, of the lower id', () => {
    const members = [member(1, { joinedAtMs: 9 }), member(2, { joinedAtMs: 5 }), member(3, { joinedAtMs: 5 })]
    assert.deepEqual(select(members, 2), [2, 3])
    assert.deepEqual(select(members, 1), [2])
    assert.deepEqual(select(members, 3), [2, 3, 1])
  })

  test('do not count those who may not be given any', () => {
    const group = groupOf('g', { maxConsumers: 1, deniedIps: ['10.0.0.9'] })
    const members = [member(1, { ip: '10.0.0.9' }), member(2), member(3)]
    assert.deepEqual(
      selectMembers({ group, members }).map(({ consumerId }) => consumerId),
      [2],
    )
  })

  test('are, of several at a place, the one that registered last', () => {
    assert.deepEqual(select([member(1, at('a', [])), member(2, at('a', [1])), member(3, at('b', []))]), [2, 3])
    assert.deepEqual(select([member(1, at('a', [])), member(2, at('a', []))]), [2])
  })

  test('are not those that only want a place, whoever has it', () => {
    assert.deepEqual(select([member(1, at('a', [])), member(2, at('a'))]), [1])
    assert.deepEqual(select([member(2, at('a'))]), [])
  })
})

describe('who was replaced', () => {
  const replaced = (...members: Member[]) => Object.fromEntries(replacedMembers(members))

  test('is whoever was at the place before, a member or not, by the one that is there now', () => {
    assert.deepEqual(replaced(member(2, at('a', [1]))), { 1: 2 })
    assert.deepEqual(replaced(member(2, at('a', [1])), member(3, at('a', [2]))), { 1: 3, 2: 3 })
    assert.deepEqual(replaced(member(2, at('a', [1])), member(3, at('a', []))), { 1: 3, 2: 3 })
  })

  test('is nobody where somebody only wants the place', () => {
    assert.deepEqual(replaced(member(1, at('a', [])), member(2, at('a'))), {})
  })

  test('is nobody who has another place by now, or none', () => {
    assert.deepEqual(replaced(member(1), member(2, at('a', [1]))), {})
    assert.deepEqual(replaced(member(1, at('b', [])), member(2, at('a', [1]))), {})
  })
})
