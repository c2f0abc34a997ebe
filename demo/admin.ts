/** Calls of the admin API that the demo and the benchmarks need. */
export async function admin(
  url: string,
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  body?: object,
): Promise<unknown> {
  const response = await fetch(`${url}/api/admin${path}`, { method, ...(body && { body: JSON.stringify(body) }) })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return response.json()
}

export type SubscriptionSettings = { threadSize?: number; consumerBatchSize?: number; maxPullTimeSeconds?: number }

/** Makes a topic and a group that subscribes to it. */
export async function setUp(
  url: string,
  topicName: string,
  queues: number,
  groupName: string,
  settings: SubscriptionSettings = {},
): Promise<void> {
  await admin(url, 'POST', '/topics', { name: topicName, queues })
  await admin(url, 'POST', '/groups', { name: groupName })
  await admin(url, 'PUT', `/groups/${groupName}/subscriptions/${topicName}`, settings)
}
