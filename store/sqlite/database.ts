import { DatabaseSync } from 'node:sqlite'
import { StoreError } from '../../core/store.ts'

/**
 * The database under the SQLite store, and its group commit.
 *
 * Writes of the same turn of the event loop share one transaction, and so one fsync; each is answered after it. They take
 * effect in the order of the calls. Readers of a file have a connection of their own, so that nobody sees what is not
 * durable yet.
 *
 * Once a write fails (disk full, I/O), what is on disk is uncertain: the store refuses everything from then on, until it
 * is opened again and SQLite has recovered its log. So nobody can build on what was not written.
 */
export type Database = {
  readonly reader: DatabaseSync
  readonly writer: DatabaseSync
  /** Runs `act` in the open transaction; resolves with its result once that is durable. */
  write<T>(act: () => T): Promise<T>
  /** Runs `act` outside of any transaction. */
  read<T>(act: () => T): Promise<T>
  close(): void
}

const schema = `
  CREATE TABLE IF NOT EXISTS log (
    q INTEGER NOT NULL, o INTEGER NOT NULL, n INTEGER NOT NULL, p TEXT NOT NULL,
    t INTEGER NOT NULL, e INTEGER NOT NULL, c INTEGER NOT NULL, b BLOB NOT NULL,
    PRIMARY KEY (q, o)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS registry (
    pk TEXT NOT NULL, sk TEXT NOT NULL, doc TEXT NOT NULL, x INTEGER,
    PRIMARY KEY (pk, sk)
  ) STRICT, WITHOUT ROWID;
`

/** Records that are kept for a time only are found by when that ends. */
const endsIndex = 'CREATE INDEX IF NOT EXISTS ends ON registry (x) WHERE x IS NOT NULL'

/** A folder of a version without such records lacks the column. */
function addEnds(writer: DatabaseSync): void {
  const columns = writer.prepare("SELECT name FROM pragma_table_info('registry')").all()
  if (!columns.some(({ name }) => name === 'x')) writer.exec('ALTER TABLE registry ADD COLUMN x INTEGER')
  writer.exec(endsIndex)
}

type Waiter = { resolve: () => void; reject: (error: unknown) => void }

export type DatabaseOptions = {
  /** Called once, when the store refuses everything from then on. */
  onFailure?: (error: StoreError) => void
}

/** Another program that reads the file, such as a backup, may lock it for a moment. */
const patienceMs = 1_000

export function openDatabase(path: string, { onFailure }: DatabaseOptions = {}): Database {
  const writer = new DatabaseSync(path, { timeout: patienceMs })
  // FULL: a commit returns after the fsync of the write-ahead log. A larger log is folded back less often.
  writer.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;')
  writer.exec(schema)
  addEnds(writer)
  const reader = path === ':memory:' ? writer : new DatabaseSync(path, { readOnly: true })
  let waiters: Waiter[] | undefined
  let failure: StoreError | undefined

  /** Nobody hears that a write was done which shared the transaction: whether it is durable is not known. */
  function fail(cause: unknown): StoreError {
    const isFirst = failure === undefined
    failure ??= new StoreError('unavailable', `the store ${path} failed while writing and has to be opened again`, {
      cause,
    })
    const rejected = waiters ?? []
    waiters = undefined
    if (writer.isTransaction) writer.exec('ROLLBACK')
    for (const waiter of rejected) waiter.reject(failure)
    if (isFirst) onFailure?.(failure)
    return failure
  }

  function commit(): void {
    if (waiters === undefined) return
    try {
      writer.exec('COMMIT')
    } catch (cause) {
      fail(cause)
      return
    }
    const answered = waiters
    waiters = undefined
    for (const waiter of answered) waiter.resolve()
  }

  function begin(): Waiter[] {
    writer.exec('BEGIN IMMEDIATE')
    setImmediate(commit)
    return []
  }

  return {
    reader,
    writer,
    write(act) {
      return new Promise((resolve, reject) => {
        if (failure) return reject(failure)
        try {
          waiters ??= begin()
        } catch (cause) {
          // Nothing was written yet, and nothing is in doubt: the next one may succeed.
          return reject(new StoreError('throttled', `the store ${path} is locked by another program`, { cause }))
        }
        try {
          const value = act()
          waiters.push({ resolve: () => resolve(value), reject })
        } catch (error) {
          reject(fail(error))
        }
      })
    },
    async read(act) {
      if (failure) throw failure
      return act()
    },
    close() {
      commit()
      if (reader !== writer) reader.close()
      writer.close()
    },
  }
}
