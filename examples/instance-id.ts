// A restart with the same instanceId has its queues back at once, and no other member's queues move.
// Two queues of the topic, and two of its fail topic.
// prints: first run has 4 queues
// prints: kept 4 queues over the restart
// prints: second run has 4 queues
import { type ClientEvent, createClient } from 'pmq-sdk'
import { prepare, url } from './support/prepare.ts'

await prepare({ topicName: 'placed', queues: 2, groupName: 'places' })

const events: ClientEvent['type'][] = []
const count = (type: ClientEvent['type']) => events.filter(seen => seen === type).length

/** One life of the process: until it has its queues. */
async function run(name: string): Promise<void> {
  const assigned = Promise.withResolvers<void>()
  let queues = 0
  // #region instance-id
  const client = createClient({
    url,
    onEvent(event) {
      events.push(event.type)
      if (event.type === 'assigned' && ++queues === 4) assigned.resolve()
    },
  })
  const consumer = client.consumer({
    groupName: 'places',
    instanceId: 'pod-0', // such as the name of a StatefulSet's pod
    topics: { placed() {} },
  })
  await consumer.start()
  // #endregion
  await assigned.promise
  console.log(`${name} has ${queues} queues`)
  await client.close() // with an instanceId it does not leave: the queues wait for the next run, for 30 s
}

await run('first run')
console.log(`kept ${count('kept')} queues over the restart`)
await run('second run')
