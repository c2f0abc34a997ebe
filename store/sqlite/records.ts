import type { DatabaseSync } from 'node:sqlite'
import type { Key } from '../keys.ts'

/** Records of the registry as JSON documents by their keys, over one connection. */
export type Records = {
  get<T>(key: Key): T | undefined
  /** With `endsAtMs` it may be removed from then on; until it is, it is found. */
  put<T>(key: Key, doc: T, endsAtMs?: number): void
  delete(key: Key): boolean
  /** Removes records whose time ended by `nowMs`, at most `limit`; returns how many. */
  removeEnded(nowMs: number, limit: number): number
  /** Everything of a partition whose sort key begins so, in the order of the sort keys. */
  list<T>(pk: string, prefix?: string): { sk: string; doc: T }[]
  /** What is below a sort key in a partition, the greatest sort key first. */
  listDown<T>(pk: string, below: string, limit: number): T[]
  /** Documents of a partition whose sort keys are in a range, both ends of it included, in their order or against it. */
  listRange<T>(range: { pk: string; from: string; to: string; isBackward: boolean; limit: number }): T[]
  /** Sort keys of a partition after `after`. */
  listKeys(pk: string, after: string, limit: number): string[]
}

export function createRecords(db: DatabaseSync): Records {
  const get = db.prepare('SELECT doc FROM registry WHERE pk = ? AND sk = ?')
  const put = db.prepare(
    'INSERT INTO registry (pk, sk, doc, x) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET doc = excluded.doc, x = excluded.x',
  )
  const remove = db.prepare('DELETE FROM registry WHERE pk = ? AND sk = ?')
  const removeEnded = db.prepare(
    'DELETE FROM registry WHERE (pk, sk) IN (SELECT pk, sk FROM registry WHERE x <= ? ORDER BY x LIMIT ?)',
  )
  const list = db.prepare('SELECT sk, doc FROM registry WHERE pk = ? AND sk >= ? AND sk < ? ORDER BY sk')
  const listDown = db.prepare('SELECT doc FROM registry WHERE pk = ? AND sk < ? ORDER BY sk DESC LIMIT ?')
  const rangeOf = (order: 'ASC' | 'DESC') =>
    db.prepare(`SELECT doc FROM registry WHERE pk = ? AND sk BETWEEN ? AND ? ORDER BY sk ${order} LIMIT ?`)
  const [forward, backward] = [rangeOf('ASC'), rangeOf('DESC')]
  const listKeys = db.prepare('SELECT sk FROM registry WHERE pk = ? AND sk > ? ORDER BY sk LIMIT ?')
  return {
    get: ({ pk, sk }) => {
      const row = get.get(pk, sk)
      return row && JSON.parse(String(row.doc))
    },
    put: ({ pk, sk }, doc, endsAtMs) => {
      put.run(pk, sk, JSON.stringify(doc), endsAtMs ?? null)
    },
    delete: ({ pk, sk }) => remove.run(pk, sk).changes > 0,
    removeEnded: (nowMs, limit) => Number(removeEnded.run(nowMs, limit).changes),
    list: (pk, prefix = '') =>
      list
        .all(pk, prefix, `${prefix}\u{10ffff}`)
        .map(row => ({ sk: String(row.sk), doc: JSON.parse(String(row.doc)) })),
    listDown: (pk, below, limit) => listDown.all(pk, below, limit).map(row => JSON.parse(String(row.doc))),
    listRange: ({ pk, from, to, isBackward, limit }) =>
      (isBackward ? backward : forward).all(pk, from, to, limit).map(row => JSON.parse(String(row.doc))),
    listKeys: (pk, after, limit) => listKeys.all(pk, after, limit).map(row => String(row.sk)),
  }
}
