import { serveKafka } from './servers/kafka.ts'
import { servePmq } from './servers/pmq.ts'
import { serveSqs } from './servers/sqs.ts'

/** A process with all stand-ins for services. It tells where they are, and ends with its parent. */
export type Addresses = { pmq: string; sqs: string; kafka: string }

const addresses: Addresses = { pmq: await servePmq(), sqs: await serveSqs(), kafka: await serveKafka() }
process.send?.(addresses)
process.once('disconnect', () => process.exit())
