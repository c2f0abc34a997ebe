import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Alarm, alarmId } from '../../core/alarms/alarm.ts'
import { type ContractScene, queueOf, topicOf } from './contract.ts'

/** The part of the contract that is about alarms, and the limits of topics that raise them. */
export function alarmsContract({ store, unique }: ContractScene): void {
  describe('alarms', () => {
    const newAlarm = (more: Partial<Alarm> = {}): Alarm => ({
      kind: 'lag',
      groupName: `g-${unique()}`,
      topicName: 't',
      facts: { messages: 7 },
      raisedAtMs: 1_700_000_000_000,
      isTold: false,
      revision: 1,
      ...more,
    })
    const find = async (alarm: Alarm) => (await store().listAlarms()).filter(each => alarmId(each) === alarmId(alarm))

    test('are put where there is none of the name, and found as they are', async () => {
      const alarm = newAlarm()
      assert.equal(await store().putAlarm(alarm), 'put')
      assert.deepEqual(await find(alarm), [alarm])
      assert.equal(await store().putAlarm({ ...alarm, facts: {} }), 'conflict')
      assert.deepEqual(await find(alarm), [alarm])
    })

    test('are changed by whoever has seen what is there', async () => {
      const alarm = newAlarm()
      assert.equal(await store().putAlarm({ ...alarm, revision: 2 }), 'conflict')
      await store().putAlarm(alarm)
      const cleared = { ...alarm, clearedAtMs: 1_700_000_000_001, isTold: true, revision: 2 }
      assert.equal(await store().putAlarm(cleared), 'put')
      assert.equal(await store().putAlarm({ ...alarm, revision: 2 }), 'conflict')
      assert.deepEqual(await find(alarm), [cleared])
    })

    test('are put once where many are at it', async () => {
      const alarm = newAlarm()
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, i) => store().putAlarm({ ...alarm, facts: { i } })),
      )
      assert.equal(answers.filter(answer => answer === 'put').length, 1)
    })

    test('are kept apart by all that their names say', async () => {
      const groupName = `g-${unique()}`
      const targetName = `t-${unique()}`
      const all = [
        newAlarm({ groupName }),
        newAlarm({ groupName, topicName: 'u' }),
        newAlarm({ groupName, kind: 'retention' }),
        { ...newAlarm({ kind: 'target_disabled', targetName }), groupName: undefined, topicName: undefined },
      ].map(({ groupName, topicName, ...rest }) => ({
        ...rest,
        ...(groupName && { groupName }),
        ...(topicName && { topicName }),
      }))
      for (const alarm of all) assert.equal(await store().putAlarm(alarm), 'put')
      for (const alarm of all) assert.deepEqual(await find(alarm), [alarm])
    })
  })

  describe('the limits of a topic', () => {
    test('are set one by one, and change nothing else', async () => {
      const n = unique()
      const name = `limits-${n}`
      const read = async () => (await store().readTopic(name))?.topic
      assert.equal(await store().updateTopic(name, { maxLag: 5 }), 'unknown_topic')
      assert.equal(await read(), undefined)
      await store().createTopic(topicOf(name), [queueOf(name, n)])
      await store().addQueues(name, [queueOf(name, unique())])
      assert.equal(await store().updateTopic(name, { maxLag: 5 }), 'updated')
      assert.equal(await store().updateTopic(name, { maxLagSeconds: 60 }), 'updated')
      assert.equal(await store().updateTopic(name, {}), 'updated')
      assert.deepEqual(await read(), { ...topicOf(name), additions: 1, maxLag: 5, maxLagSeconds: 60 })
      assert.equal(await store().updateTopic(name, { maxLag: 0 }), 'updated')
      assert.equal((await read())?.maxLag, 0)
    })
  })
}
