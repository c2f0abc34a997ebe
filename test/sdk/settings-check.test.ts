import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { recorder, setUp, upTo } from './consumer-setup.ts'

/** Longer than from one look to the next, and the looks that follow one that finds something. */
const untilMendedMs = 8 * 60_000

suite('a consumer that works with other settings than the service has', () => {
  test('because it was not told of a change finds it, tells of it, and works with it', async () => {
    const { clock, consumer, groups, log } = setUp({ queues: 2, settings: { stopFlag: 1, threadSize: 1 } })
    const { seen, handler } = recorder()
    const { start, stop, events, status } = consumer(handler)
    await start()
    await clock.advance(10_000)
    log.put(1, ['a', 'b'])
    groups.alter('billing', group => Object.assign(group.settings, { stopFlag: 0, threadSize: 3 }))
    await clock.advance(untilMendedMs)
    assert.deepEqual(
      events.filter(({ type }) => type === 'settings_differ'),
      [{ type: 'settings_differ', groupName: 'billing', names: ['threadSize', 'stopFlag'] }],
    )
    assert.deepEqual(
      status().queues.map(({ state }) => state),
      ['running', 'running'],
    )
    assert.deepEqual(seen, upTo(1, 2))
    await stop()
    assert.equal(clock.sleeping, 0)
  })

  test('because the service was set back to an earlier state takes up its queues again', async () => {
    const { clock, consumer, groups, log, committed } = setUp({ queues: 2 })
    const { seen, handler } = recorder()
    const { start, stop, count } = consumer(handler)
    await start()
    for (let change = 0; change < 5; change++) groups.changeSettings('billing', { threadSize: change + 1 })
    groups.reset('billing', 1, 0)
    await clock.advance(10_000)
    log.put(1, ['a', 'b'])
    await clock.advance(10_000)
    groups.alter('billing', group => {
      group.version = 2
      for (const place of group.offsets.values()) Object.assign(place, { offset: 0, offsetVersion: 1 })
    })
    log.put(1, ['c'])
    log.put(2, ['d'])
    await clock.advance(untilMendedMs)
    assert.ok(count('settings_differ') > 0)
    assert.deepEqual([...new Set(seen)].toSorted(), [...upTo(1, 3), ...upTo(2, 1)])
    assert.deepEqual(committed(), [3, 1])
    await stop()
  })

  test('is not compared where settingsCheckIntervalMs is 0', async () => {
    const { clock, consumer, groups } = setUp()
    const { start, stop, count } = consumer(() => undefined, { settingsCheckIntervalMs: 0 })
    await start()
    await clock.advance(10_000)
    groups.alter('billing', group => Object.assign(group.settings, { threadSize: 3 }))
    await clock.advance(3_600_000)
    assert.equal(count('settings_differ'), 0)
    await stop()
  })
})
