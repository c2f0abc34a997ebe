import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { RunningEngine } from '../support/engines.ts'
import { dynoxide } from '../support/engines.ts'
import { openIdleFleet } from '../support/idle-fleet.ts'

const engine = dynoxide()
const hour = 60
/** The lists that each tick reads: of what is awake, new, has targets, or an alarm; and the targets of alarms. */
const listUnits = 5

describe('what ticks ask of DynamoDB where nothing happens', { skip: engine.skip ?? false }, () => {
  let running: RunningEngine
  before(async () => {
    running = await engine.start()
  })
  after(() => running?.stop())

  test('is nothing to write, and of a group that nobody runs six reads an hour, however large the last batches are', async () => {
    const groups = 12
    const fleet = await openIdleFleet(running, { groups, queues: 4, hasMembers: false, batchBytes: 40_000 })
    await fleet.tick(4 * hour)
    fleet.meter.clear()
    await fleet.tick(hour)
    const { readUnits, writeUnits } = fleet.meter.sum()
    assert.equal(writeUnits, 0)
    // The group, its two topics, and a half for each of their six queues; and all names every five minutes.
    const expected = hour * listUnits + groups * (1 + 2 + 6 / 2) + (2 * hour) / 5
    assert.ok(readUnits <= expected, `${readUnits} read units instead of ${expected}`)
    await fleet.close()
  })

  test('is of a group that is running a read of it and one of its consumer each minute', async () => {
    const fleet = await openIdleFleet(running, { groups: 3, queues: 4, hasMembers: true, batchBytes: 8_000 })
    await fleet.tick(2 * hour)
    fleet.meter.clear()
    await fleet.tick(hour)
    assert.equal(fleet.meter.of('readConsumers').requests, 3 * hour)
    const looks = fleet.meter.of('readGroup').requests - 3 * hour
    assert.ok(looks >= 3 * 3 && looks <= 3 * 5, `${looks} looks`)
    assert.equal(fleet.meter.of('readHeaders').readUnits, looks * 3)
    const { writeUnits } = fleet.meter.of('heartbeat')
    assert.equal(fleet.meter.sum().writeUnits, writeUnits)
    await fleet.close()
  })
})
