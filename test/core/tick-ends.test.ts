import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Alarm } from '../../core/alarms/alarm.ts'
import { createCore } from '../../core/core.ts'
import { hashKey } from '../../core/log/placement.ts'
import type { Notice } from '../../core/notices.ts'
import { type Store, StoreError } from '../../core/store.ts'
import { tick } from '../../core/tick/tick.ts'
import { openSqliteStore } from '../../store/sqlite/open.ts'
import { createTopic, join } from '../wire/scene.ts'
import { openService } from '../wire/service.ts'
import { intercept } from './scripted-store.ts'

const minuteMs = 60_000
/** Looked at in the minute in which its topic is. */
const groupName = Array.from({ length: 1_000 }, (_, i) => `billing-${i}`).find(name => {
  return hashKey(name) % 15 === hashKey('orders') % 15
}) as string

/** That of what the tick finds; nobody handles a message afterwards, of which there is another one. */
const isOfLimit = ({ kind }: Pick<Alarm, 'kind'>) => kind === 'lag'

/** A process that ends after so many of its operations: nothing that it does afterwards has an effect. */
function mortal(store: Store, operations: number) {
  const life = { left: operations }
  const through = intercept(store, async call => {
    if (life.left-- <= 0) throw new StoreError('unavailable', 'the process has ended')
    return call.run()
  })
  return { through, life }
}

/**
 * A tick that finds everything to do, and ends after so many operations; others, of a process of their own, follow. Answers with
 * what there is then, and what was told of it.
 */
async function play(operations: number) {
  const store = openSqliteStore(':memory:')
  const service = openService({ store })
  const { clock } = service
  const [queueId = 0, other = 0] = await createTopic(service, 'orders', 2)
  await service.call('createGroup', { name: groupName })
  await service.call('subscribe', { maxLag: 3 }, { groupName, topicName: 'orders' })
  const gone = await join(service, groupName, ['orders'], 'gone')
  const alive = await join(service, groupName, ['orders'], 'alive')
  const msgs = Array.from({ length: 9 }, () => ({ body: 'm', partitionInfo: { queueId } }))
  await service.call('publish', { topicName: 'orders', msgs })
  // Past the service, which would look after the group with it.
  const heartbeat = (consumerId = alive) => store.heartbeat(consumerId, clock.now())
  // Until the next minute is the topic's of the hour, and the group's of the quarter. Both consumers live, as far as anybody can tell.
  while (Math.floor(clock.now() / minuteMs) % 60 !== (hashKey('orders') + 59) % 60) clock.advance(minuteMs)
  await heartbeat(alive)
  await heartbeat(gone)

  const told: Notice[] = []
  const dying = mortal(store, Number.POSITIVE_INFINITY)
  const containerOf = (through: Store, life: { left: number }) =>
    createCore({
      ...service.core,
      store: through,
      bus: {
        async groupChanged() {},
        async tell(notice) {
          if (life.left > 0) told.push(notice)
        },
      },
    })
  const first = containerOf(dying.through, dying.life)
  clock.advance(20_000)
  await heartbeat()
  await tick(first)
  clock.advance(40_000)
  await heartbeat()
  dying.life.left = operations
  await tick(first)
  const hasEnded = dying.life.left <= 0
  const used = operations - dying.life.left

  const second = containerOf(store, { left: 1 })
  for (let minute = 0; minute < 75; minute++) {
    clock.advance(minuteMs)
    await heartbeat()
    assert.deepEqual((await tick(second)).failed, [])
  }
  const { offsets = [], members = [] } = (await store.readGroup(groupName)) ?? {}
  const { queues = [] } = (await store.readTopic('orders')) ?? {}
  const result = {
    members: members.map(({ consumerId }) => (consumerId === alive ? 'alive' : 'gone')),
    owners: offsets
      .filter(offset => [queueId, other].includes(offset.queueId))
      .map(({ consumerId }) => (consumerId === alive ? 'alive' : 'gone')),
    checkpoints: queues.map(({ checkpoint }) => checkpoint),
    alarms: (await store.listAlarms()).filter(isOfLimit).map(({ kind, isTold }) => ({ kind, isTold })),
  }
  await service.close()
  return {
    hasEnded,
    used,
    told: told.filter(notice => notice.type === 'AlarmRaised' && isOfLimit(notice.alarm)).length,
    result,
  }
}

describe('a tick that ends anywhere', () => {
  test('leaves nothing undone for long', async t => {
    const whole = await play(1_000_000)
    assert.deepEqual(whole.result, {
      members: ['alive'],
      owners: ['alive', 'alive'],
      checkpoints: [10, 1],
      alarms: [{ kind: 'lag', isTold: true }],
    })
    assert.equal(whole.told, 1)
    for (let operations = 0; operations < whole.used; operations++) {
      const { hasEnded, told, result } = await play(operations)
      assert.ok(hasEnded)
      assert.deepEqual(result, whole.result, `after ${operations} operations`)
      assert.ok(told === 1 || told === 2, `told ${told} times after ${operations} operations`)
    }
    t.diagnostic(`${whole.used} places`)
  })
})
