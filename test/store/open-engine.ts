import { openTestStore, type TestStore } from '../support/dynamo-store.ts'
import type { Engine, RunningEngine } from '../support/engines.ts'

export type EngineStore = TestStore & { running: RunningEngine }

/** Starts an engine and opens a store on it; closing the store stops the engine. */
export async function openOnEngine(engine: Engine): Promise<EngineStore> {
  const running = await engine.start()
  const opened = await openTestStore(running)
  return {
    ...opened,
    running,
    async close() {
      await opened.close()
      await running.stop()
    },
  }
}
