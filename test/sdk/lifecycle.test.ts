import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createLifecycle } from '../../sdk/src/lifecycle.ts'
import { settle } from './manual-clock.ts'

function setUp({ opens = true } = {}) {
  const log: string[] = []
  const gates: (() => void)[] = []
  const pass = async () => {
    gates.shift()?.()
    await settle()
  }
  const gate = () => new Promise<void>(resolve => gates.push(resolve))
  const lifecycle = createLifecycle({
    async open(signal) {
      log.push('open')
      const onAbort = () => log.push('abort')
      signal.addEventListener('abort', onAbort)
      await gate()
      signal.removeEventListener('abort', onAbort)
      log.push(opens ? 'opened' : 'failed')
      if (!opens) throw new Error('refused')
    },
    async close() {
      log.push('close')
      await gate()
      log.push('closed')
    },
  })
  return { log, pass, lifecycle }
}

suite('a lifecycle', () => {
  test('starts once however often it is told, and stops once', async () => {
    const { log, pass, lifecycle } = setUp()
    const starts = [lifecycle.start(), lifecycle.start()]
    assert.equal(lifecycle.state, 'starting')
    await settle()
    await pass()
    await Promise.all(starts)
    await lifecycle.start()
    assert.equal(lifecycle.state, 'running')
    const stops = [lifecycle.stop(), lifecycle.stop()]
    assert.equal(lifecycle.state, 'stopping')
    await settle()
    await pass()
    await Promise.all(stops)
    await lifecycle.stop()
    assert.equal(lifecycle.state, 'stopped')
    assert.deepEqual(log, ['open', 'opened', 'close', 'closed'])
  })

  test('a stop without a start does nothing', async () => {
    const { log, lifecycle } = setUp()
    await lifecycle.stop()
    assert.deepEqual([log, lifecycle.state], [[], 'stopped'])
  })

  test('a stop while starting aborts the start, which resolves, and closes what was opened', async () => {
    const { log, pass, lifecycle } = setUp()
    const started = lifecycle.start()
    await settle()
    const stopped = lifecycle.stop()
    await settle()
    await pass()
    await started
    await pass()
    await stopped
    assert.deepEqual(log, ['open', 'abort', 'opened', 'close', 'closed'])
    assert.equal(lifecycle.state, 'stopped')
  })

  test('a start while stopping waits for the end of the stop', async () => {
    const { log, pass, lifecycle } = setUp()
    void lifecycle.start()
    await settle()
    await pass()
    void lifecycle.stop()
    const again = lifecycle.start()
    await settle()
    assert.deepEqual(log, ['open', 'opened', 'close'])
    await pass()
    await pass()
    await again
    assert.deepEqual(log, ['open', 'opened', 'close', 'closed', 'open', 'opened'])
    assert.equal(lifecycle.state, 'running')
  })

  test('start, stop, start, start ends up running, opened once', async () => {
    const { log, pass, lifecycle } = setUp()
    const all = [lifecycle.start(), lifecycle.stop(), lifecycle.start(), lifecycle.start()]
    for (let step = 0; step < 6; step++) {
      await settle()
      await pass()
    }
    await Promise.all(all)
    assert.equal(lifecycle.state, 'running')
    assert.deepEqual(log, ['close', 'closed', 'open', 'opened'], 'the first start was overtaken before it opened')
  })

  test('a start that was overtaken while it waited opens nothing', async () => {
    const { log, pass, lifecycle } = setUp()
    void lifecycle.start()
    await settle()
    await pass()
    void lifecycle.stop()
    const second = lifecycle.start()
    const stopped = lifecycle.stop()
    for (let step = 0; step < 4; step++) {
      await settle()
      await pass()
    }
    await Promise.all([second, stopped])
    assert.equal(log.filter(entry => entry === 'open').length, 1)
    assert.equal(lifecycle.state, 'stopped')
  })

  test('a failed start rejects, closes what there is, and may be repeated', async () => {
    const { log, pass, lifecycle } = setUp({ opens: false })
    for (let attempt = 0; attempt < 2; attempt++) {
      const failed = assert.rejects(lifecycle.start(), /refused/)
      await settle()
      await pass()
      await pass()
      await failed
      assert.equal(lifecycle.state, 'stopped')
    }
    assert.deepEqual(log, ['open', 'failed', 'close', 'closed', 'open', 'failed', 'close', 'closed'])
  })
})
