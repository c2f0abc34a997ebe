import { Readable } from 'node:stream'
import { spec, type TestEvent } from 'node:test/reporters'

/**
 * The runner's `spec` report, and as the very last line what everyone wants to know, in the runner's own counts:
 * `N passed, N failed` (and `, N skipped`). One reporter for both, since two of them would end in any order.
 */
export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string | Buffer> {
  let closingLine = '0 passed, 1 failed: the run ended without a summary'
  async function* watch() {
    for await (const event of source) {
      // Each file has a summary of its own; the one without a file is that of the run.
      if (event.type === 'test:summary' && event.data.file === undefined) closingLine = close(event.data)
      yield event
    }
  }
  yield* Readable.from(watch()).pipe(new spec())
  yield `${closingLine}\n`
}

type Summary = Extract<TestEvent, { type: 'test:summary' }>['data']

function close({ counts, success }: Summary): string {
  // What neither passed nor was excused has failed: also what a time-out cancelled. A suite's own hooks are not counted
  // as tests, so a run may have failed without a failed test.
  const failed = Math.max(counts.tests - counts.passed - counts.skipped - counts.todo, success ? 0 : 1)
  return `${counts.passed} passed, ${failed} failed${counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''}`
}
