import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { decideHandover, type Handover } from '../../core/group/handover.ts'
import { offsetOf } from '../store/contract.ts'

const timeoutMs = 60_000
const sinceMs = 1_000_000
const plan = (wanted: number, fields: Partial<Handover> = {}): Handover => ({
  wanted,
  owner: 'alive',
  nowMs: sinceMs + 10_000,
  timeoutMs,
  ...fields,
})
const free = offsetOf('g', 1)
const owned = offsetOf('g', 1, { consumerId: 1 })
const leaving = offsetOf('g', 1, { consumerId: 1, nextConsumerId: 2, leavingSinceMs: sinceMs })
const late = { nowMs: sinceMs + timeoutMs }
const gone = { owner: 'gone' } as const
const dead = { owner: 'lost' } as const

describe('the next step of a queue', () => {
  const cases: [string, ReturnType<typeof decideHandover>, ReturnType<typeof decideHandover>][] = [
    ['free, wanted by nobody: stays free', decideHandover(free, plan(0)), undefined],
    ['free, wanted: is owned at once', decideHandover(free, plan(2)), { consumerId: 2 }],
    ['owned, wanted by its owner: stays', decideHandover(owned, plan(1)), undefined],
    [
      'owned, wanted by another: begins to leave',
      decideHandover(owned, plan(2)),
      { consumerId: 1, leaving: { nextConsumerId: 2, sinceMs: sinceMs + 10_000 } },
    ],
    [
      'owned, wanted by nobody any more: begins to leave',
      decideHandover(owned, plan(0)),
      { consumerId: 1, leaving: { nextConsumerId: 0, sinceMs: sinceMs + 10_000 } },
    ],
    ['owned, its owner gone: is taken at once', decideHandover(owned, plan(2, gone)), { consumerId: 2 }],
    ['owned, its owner gone and wanted by nobody: is free', decideHandover(owned, plan(0, gone)), { consumerId: 0 }],
    [
      'owned, its owner lost: is taken from the dead',
      decideHandover(owned, plan(2, dead)),
      { consumerId: 2, ownerIsLost: true },
    ],
    ['free, whoever was lost: is no death', decideHandover(free, plan(2, dead)), { consumerId: 2 }],
    ['leaving, as planned: waits for its owner', decideHandover(leaving, plan(2)), undefined],
    ['leaving, wanted back: stays with its owner', decideHandover(leaving, plan(1)), { consumerId: 1 }],
    [
      'leaving, wanted by a third: leaves for that one, in the time that is left',
      decideHandover(leaving, plan(3)),
      { consumerId: 1, leaving: { nextConsumerId: 3, sinceMs } },
    ],
    ['leaving, its owner gone: is taken at once', decideHandover(leaving, plan(3, gone)), { consumerId: 3 }],
    [
      'leaving, its owner lost: is taken from the dead',
      decideHandover(leaving, plan(3, dead)),
      { consumerId: 3, ownerIsLost: true },
    ],
    ['leaving, its owner late: is taken', decideHandover(leaving, plan(2, late)), { consumerId: 2 }],
    ['leaving, its owner late but wanted back: stays', decideHandover(leaving, plan(1, late)), { consumerId: 1 }],
  ]
  for (const [name, decided, expected] of cases) test(name, () => assert.deepEqual(decided, expected))
})
