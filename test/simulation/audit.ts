import type { BatchMessage } from '../../core/protocol/pull.ts'
import { createContainer, readAfter } from '../log/containers.ts'
import { createProcess } from './world/process.ts'
import { lookAround, type World } from './world/world.ts'

/** Reads every queue to its end, as a group of its own that nothing happens to. So the checker knows all that there is. */
export async function audit(world: World): Promise<void> {
  const { history, shared, scheduler, queueIds, recorder } = world
  await lookAround(world)
  await findFailTopicsOfFailTopics(world)
  const { clock } = createProcess(scheduler, 'auditor')
  const container = createContainer(shared.store, { clock })
  for (const queueId of [...[...queueIds.values()].flat(), ...recorder.failQueues.keys()]) {
    const nameOf = (message: BatchMessage) => recorder.valueOf(queueId, message)
    for (let from = 0; ; ) {
      const { messages, skipped } = await readAfter(container, queueId, from, nameOf)
      const last = messages.at(-1)
      if (!last) break
      history.pullOk('auditor', { queueId, from, messages, skipped })
      from = last.offset
    }
  }
  history.drained('auditor', { group: 'auditor' })
}

async function findFailTopicsOfFailTopics({ shared, queueIds, defects }: World): Promise<void> {
  for (const name of await shared.store.listTopics({ limit: 1000 })) {
    const { failOf } = (await shared.store.readTopic(name))?.topic ?? {}
    if (failOf && !queueIds.has(failOf.topicName)) defects.push(`${name} is the fail topic of a fail topic`)
  }
}
