/** What an operator does once, before programs publish and consume: a topic, a group, and the group's subscription. */
export type Plan = {
  topicName: string
  queues?: number
  groupName: string
  /** Whose queues are whose: the members' by default; `claimed` is for functions. */
  mode?: 'balanced' | 'claimed'
  /** How the subscription is worked on. */
  settings?: {
    /** Handler calls of one queue at a time. */
    threadSize?: number
    /** Messages that one call gets. */
    consumerBatchSize?: number
    /** What failed is handed out again where it is, and the queue waits for it. */
    retryInPlace?: boolean
  }
}

/** The host of `npm start`, or another. */
export const url = process.env.PMQ_URL ?? 'http://127.0.0.1:8080'

/** Makes what is not there yet. */
export async function prepare({
  topicName,
  queues = 4,
  groupName,
  mode = 'balanced',
  settings = {},
}: Plan): Promise<void> {
  await ask('POST', '/topics', { name: topicName, queues })
  await ask('POST', '/groups', { name: groupName, mode })
  await ask('PUT', `/groups/${groupName}/subscriptions/${topicName}`, settings)
}

async function ask(method: string, path: string, body: object): Promise<void> {
  const response = await fetch(`${url}/api/admin${path}`, { method, body: JSON.stringify(body) })
  const isThere = response.status === 409
  if (!response.ok && !isThere) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  await response.body?.cancel()
}
