import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/**
 * Locks a folder for this process: by SQLite's own file lock, which every operating system lets go when the process
 * ends, however it ends. Returns what releases it.
 */
export function lockFolder(folder: string): () => void {
  const lock = new DatabaseSync(join(folder, 'lock.db'))
  try {
    // Not waited for: whoever holds it holds it for as long as it runs.
    lock.exec('PRAGMA busy_timeout = 0; PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE')
  } catch (cause) {
    lock.close()
    throw new Error('another host uses it; stop that one, or choose another folder', { cause })
  }
  return () => lock.close()
}
