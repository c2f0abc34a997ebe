import { isLeftOver, removeTopic } from '../admin/remove-topic.ts'
import type { Core } from '../core.ts'
import { checkpointTopic } from '../log/checkpoint.ts'
import { isTurnOf } from './looks.ts'
import type { TickReport } from './report.ts'
import type { Turns } from './turns.ts'

const everyMinutes = 60

/**
 * Records once an hour how far each queue of a topic reaches, and removes fail topics that nobody needs any more. Late is as good:
 * retention is a day ahead of deletion.
 */
export async function lookAfterTopics(core: Core, report: TickReport, turns: Turns): Promise<void> {
  const nowMs = core.clock.now()
  const names = (await core.names.get('topic')) ?? []
  const due = names.filter(name => isTurnOf(name, everyMinutes, nowMs))
  await turns.each(due, 'topic', async topicName => {
    report.topics++
    const topic = await checkpointTopic(core, topicName)
    if (topic && (await isLeftOver(core, topic))) await removeTopic(core, topicName)
  })
}
