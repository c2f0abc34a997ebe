import { execFile } from 'node:child_process'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A Node of this major version: ours, or one of those on the PATH. Machines often have one of their own beside ours. */
export async function findNode(major: number): Promise<string | undefined> {
  if (process.version.startsWith(`v${major}.`)) return process.execPath
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const node = join(folder, process.platform === 'win32' ? 'node.exe' : 'node')
    const found = await run(node, ['--version']).catch(() => undefined)
    if (found?.stdout.startsWith(`v${major}.`)) return node
  }
  return undefined
}
