import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Notice } from '../../core/notices.ts'
import { createAnnouncer } from '../../core/notify/announce.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { seededRandom } from '../support/random.ts'

type Heard = { type: Notice['type']; queueId: number; saidAtMs: number; heardAtMs: number }

function open() {
  const clock = createManualClock()
  const heard: Heard[] = []
  const announce = createAnnouncer(clock, {
    async tell(notice) {
      if (!('queueId' in notice)) return assert.fail(notice.type)
      const saidAtMs = clock.monotonic()
      heard.push({
        type: notice.type,
        queueId: notice.queueId,
        saidAtMs,
        heardAtMs: saidAtMs + (notice.type === 'QueueBusy' ? 1_000 : 0),
      })
    },
  })
  return { clock, heard, append: (queueId = 1, more = {}) => announce({ topicName: 'orders', queueId, ...more }) }
}

describe('the word that a queue has got messages', () => {
  test('is said at once for what comes now and then', async () => {
    const { clock, heard, append } = open()
    for (let i = 0; i < 20; i++) {
      await append()
      clock.advance(1_000)
    }
    assert.deepEqual(new Set(heard.map(({ type }) => type)), new Set(['QueueAppended']))
    assert.equal(heard.length, 20)
  })

  test('is said a few times and then once a second, twice with what is heard later, for a queue that is busy', async () => {
    const { clock, heard, append } = open()
    for (let ms = 0; ms < 60_000; ms += 10) {
      await append()
      clock.advance(10)
    }
    const count = (type: string) => heard.filter(each => each.type === type).length
    assert.ok(count('QueueAppended') >= 60 && count('QueueAppended') <= 63, `${count('QueueAppended')}`)
    assert.ok(count('QueueBusy') >= 60 && count('QueueBusy') <= 67, `${count('QueueBusy')}`)
  })

  test('is heard by somebody after each append, whatever comes when', async () => {
    for (let seed = 0; seed < 50; seed++) {
      const random = seededRandom(seed)
      const { clock, heard, append } = open()
      const appended: { queueId: number; atMs: number }[] = []
      for (let i = 0; i < 200; i++) {
        clock.advance(random() < 0.05 ? random() * 5_000 : random() * 60)
        // A container that was frozen, or whose clock was set.
        if (random() < 0.05) clock.step((random() - 0.5) * 4_000)
        const queueId = 1 + Math.floor(random() * 2)
        appended.push({ queueId, atMs: clock.monotonic() })
        await append(queueId)
      }
      const unheard = appended.filter(
        ({ queueId, atMs }) => !heard.some(each => each.queueId === queueId && each.heardAtMs >= atMs),
      )
      assert.deepEqual(unheard, [], `seed ${seed}`)
    }
  })

  test('counts the time in which its container was frozen, of which one clock knows nothing', async () => {
    const { clock, heard, append } = open()
    for (let i = 0; i < 10; i++) await append()
    const before = heard.length
    clock.step(950)
    await append()
    assert.equal(heard.length, before + 1)
  })

  test('is another one for what is due whatever is delayed', async () => {
    const { heard, append } = open()
    await append()
    await append(1, { isDue: true })
    assert.deepEqual(
      heard.map(({ type }) => type),
      ['QueueAppended', 'QueueAppended'],
    )
  })
})
