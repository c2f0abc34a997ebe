import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type AuditEntry, boundOf, entryIdOf, monthOf } from '../../core/audit/records.ts'
import type { ContractScene } from './contract.ts'

const dayMs = 86_400_000

/** The part of the contract that is about the audit log. */
export function auditContract({ store, unique }: ContractScene): void {
  describe('the audit log', () => {
    // Each test has years of its own.
    const newYear = () => Date.UTC(2030 + 2 * unique(), 0, 1)
    const entryAt = (askedAtMs: number, fields: Partial<AuditEntry> = {}): AuditEntry => ({
      entryId: entryIdOf(askedAtMs, `n${unique()}`),
      askedAtMs,
      who: 'arn:aws:sts::1:assumed-role/operator/ann',
      ip: '10.0.0.1',
      act: 'createTopic',
      entity: 'topic:orders',
      parameters: '{}',
      outcome: 'asked',
      before: 'null',
      ...fields,
    })
    const list = (timeMs: number, below = boundOf(8e15), limit = 10) =>
      store().listAuditEntries({ month: monthOf(timeMs), below, limit })
    const idsOf = async (timeMs: number, below?: string) =>
      (await list(timeMs, below)).entries.map(({ entryId }) => entryId)

    test('has an entry from when it is added, as it was', async () => {
      const atMs = newYear()
      const small = entryAt(atMs)
      const full = entryAt(atMs + 1, { request: '{"name":"ü"}', outcome: 'done', endedAtMs: atMs + 2, after: '{}' })
      for (const entry of [small, full]) await store().addAuditEntry(entry)
      assert.deepEqual(await list(atMs), { entries: [full, small], hasMore: false })
    })

    test('adds to an entry how the act ended, once or again', async () => {
      const atMs = newYear()
      const entry = entryAt(atMs)
      await store().addAuditEntry(entry)
      const end = { outcome: 'refused', code: 'conflict', endedAtMs: atMs + 5, after: '{"a":1}' } as const
      assert.equal(await store().endAuditEntry(entry.entryId, end), 'ended')
      assert.deepEqual((await list(atMs)).entries, [{ ...entry, ...end }])
      assert.equal(await store().endAuditEntry(entry.entryId, end), 'ended')
      assert.deepEqual((await list(atMs)).entries, [{ ...entry, ...end }])
    })

    test('does not forget how an act ended when its entry is added once more', async () => {
      const atMs = newYear()
      const entry = entryAt(atMs)
      await store().addAuditEntry(entry)
      await store().endAuditEntry(entry.entryId, { outcome: 'done', endedAtMs: atMs + 5 })
      await store().addAuditEntry(entry)
      assert.deepEqual((await list(atMs)).entries, [{ ...entry, outcome: 'done', endedAtMs: atMs + 5 }])
    })

    test('makes no entry of an end alone', async () => {
      const atMs = newYear()
      assert.equal(await store().endAuditEntry(entryIdOf(atMs, 'nobody'), { outcome: 'done' }), 'unknown_entry')
      assert.deepEqual(await list(atMs), { entries: [], hasMore: false })
    })

    test('lists a month from the newest on, below a bound, and no other month', async () => {
      const atMs = newYear()
      const days = [0, 1, 2, 30, 31].map(day => entryAt(atMs + day * dayMs))
      const last = entryAt(atMs - 1)
      for (const entry of [days[2], days[0], last, days[4], days[3], days[1]]) {
        if (entry) await store().addAuditEntry(entry)
      }
      const ids = days.map(({ entryId }) => entryId)
      assert.deepEqual(await idsOf(atMs), [ids[3], ids[2], ids[1], ids[0]])
      assert.deepEqual(await idsOf(atMs, ids[2]), [ids[1], ids[0]])
      assert.deepEqual(await idsOf(atMs, boundOf(atMs + dayMs)), [ids[0]])
      assert.deepEqual(await idsOf(atMs, boundOf(atMs)), [])
      assert.deepEqual(await idsOf(atMs - 1), [last.entryId])
      assert.deepEqual(await idsOf(atMs + 31 * dayMs), [ids[4]])
    })

    test('lists page by page, also those that are too large for one', async () => {
      const atMs = newYear()
      const large = JSON.stringify('x'.repeat(100_000))
      const entries = Array.from({ length: 7 }, (_, i) =>
        entryAt(atMs + i, { request: large, before: large, after: large, outcome: 'done' }),
      )
      for (const entry of entries) await store().addAuditEntry(entry)
      const found: string[] = []
      for (let below = boundOf(8e15), pages = 0; ; pages++) {
        const page = await list(atMs, below, 5)
        found.push(...page.entries.map(({ entryId }) => entryId))
        if (!page.hasMore) break
        assert.ok(page.entries.length > 0 && pages < 10)
        below = found.at(-1) ?? ''
      }
      assert.deepEqual(found, entries.map(({ entryId }) => entryId).reverse())
    })

    test('has every one of many that are added at once', async () => {
      const atMs = newYear()
      const entries = Array.from({ length: 20 }, () => entryAt(atMs))
      await Promise.all(entries.map(entry => store().addAuditEntry(entry)))
      const { entries: listed } = await list(atMs, undefined, 100)
      assert.deepEqual(listed.map(({ entryId }) => entryId).sort(), entries.map(({ entryId }) => entryId).sort())
    })
  })
}
