/** Milliseconds by the machine's one clock that never steps, so that histories of several processes can be merged. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
