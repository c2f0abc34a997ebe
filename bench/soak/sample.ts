import { getHeapSpaceStatistics } from 'node:v8'

/** What a process holds, after a forced collection of garbage. */
export type Sample = {
  atMs: number
  /** Of the heap: objects, and what the engine has compiled. It goes on to compile for a long time where little is to be done. */
  objectBytes: number
  codeBytes: number
  /** Buffers, which are not in the heap. */
  externalBytes: number
  /** Sockets, timers and whatever else keeps a process alive, by kind. */
  handles: Record<string, number>
}

/** Needs `--expose-gc`. */
export function takeSample(): Sample {
  // What the first one finalises is free after the second.
  globalThis.gc?.()
  globalThis.gc?.()
  let objectBytes = 0
  let codeBytes = 0
  for (const { space_name: name, space_used_size: usedBytes } of getHeapSpaceStatistics()) {
    if (/code|trusted/.test(name)) codeBytes += usedBytes
    else objectBytes += usedBytes
  }
  const handles: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) handles[kind] = (handles[kind] ?? 0) + 1
  return { atMs: performance.now(), objectBytes, codeBytes, externalBytes: process.memoryUsage().external, handles }
}

export function countHandles({ handles }: Sample): number {
  return Object.values(handles).reduce((sum, count) => sum + count, 0)
}
