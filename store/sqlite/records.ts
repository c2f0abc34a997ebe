import type { DatabaseSync } from 'node:sqlite'
import type { Key } from '../keys.ts'

/** Records of the registry as JSON documents by their keys, over one connection. */
export type Records = {
  get<T>(key: Key): T | undefined
  put<T>(key: Key, doc: T): void
  delete(key: Key): boolean
  /** Everything of a partition whose sort key begins so, in the order of the sort keys. */
  list<T>(pk: string, prefix?: string): { sk: string; doc: T }[]
  /** Sort keys of a partition after `after`. */
  listKeys(pk: string, after: string, limit: number): string[]
}

export function createRecords(db: DatabaseSync): Records {
  const get = db.prepare('SELECT doc FROM registry WHERE pk = ? AND sk = ?')
  const put = db.prepare(
    'INSERT INTO registry (pk, sk, doc) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET doc = excluded.doc',
  )
  const remove = db.prepare('DELETE FROM registry WHERE pk = ? AND sk = ?')
  const list = db.prepare('SELECT sk, doc FROM registry WHERE pk = ? AND sk >= ? AND sk < ? ORDER BY sk')
  const listKeys = db.prepare('SELECT sk FROM registry WHERE pk = ? AND sk > ? ORDER BY sk LIMIT ?')
  return {
    get: ({ pk, sk }) => {
      const row = get.get(pk, sk)
      return row && JSON.parse(String(row.doc))
    },
    put: ({ pk, sk }, doc) => {
      put.run(pk, sk, JSON.stringify(doc))
    },
    delete: ({ pk, sk }) => remove.run(pk, sk).changes > 0,
    list: (pk, prefix = '') =>
      list
        .all(pk, prefix, `${prefix}\u{10ffff}`)
        .map(row => ({ sk: String(row.sk), doc: JSON.parse(String(row.doc)) })),
    listKeys: (pk, after, limit) => listKeys.all(pk, after, limit).map(row => String(row.sk)),
  }
}
