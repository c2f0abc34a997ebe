// Events in a log, as pino writes it: names and numbers, never what a message says.
// prints: …"event":"assigned"…"topicName":"logged"…
// prints: …"event":"revoked"…

import { pino } from 'pino'
import { createClient, logEvents } from 'pmq-sdk'
import { prepare, url } from './support/prepare.ts'

await prepare({ topicName: 'logged', queues: 1, groupName: 'loggers' })
const done = Promise.withResolvers<void>()

// #region log
const client = createClient({ url, onEvent: logEvents(pino(), { levels: { registered: 'off' } }) })
// #endregion
const consumer = client.consumer({ groupName: 'loggers', topics: { logged: () => done.resolve() } })
await consumer.start()
await client.publish('logged', { body: 'a message' })
await done.promise
await client.close()
