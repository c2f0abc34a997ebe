import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Containers } from './containers.ts'

/** Every endpoint once, and what lies behind them: joining, leaving, falling silent, rebalances and an hour of ticks. */
export async function useEverything(
  { call, tick }: Pick<Containers, 'call' | 'tick'>,
  advance: (ms: number) => void,
  hook: Hook,
) {
  const client = { lan: 'nodejs', sdkVersion: '1', clientIp: '127.0.0.1' }
  const paths = { groupName: 'g', topicName: 't' }
  const consumerGroupNames = { g: ['t'] }
  const join = async (name: string): Promise<number> => {
    const { id: consumerId } = await call('register', { ...client, name })
    await call('registerConsumerGroup', { ...client, consumerId, consumerGroupNames })
    return consumerId
  }

  await call('createTopic', { name: 't', queues: 2 })
  await call('createGroup', { name: 'g' })
  await call('updateGroup', { maxConsumers: 9 }, paths)
  await call('addQueues', { count: 1 }, paths)
  await call('changeQueue', { readOnly: true }, { ...paths, queueId: '3' })
  await call('subscribe', {}, paths)
  await call('subscribe', { threadSize: 7 }, paths)
  await call('stopQueues', { of: 'all' }, paths)
  await call('startQueues', { of: 'all' }, paths)
  await call('resetOffsets', { of: 'all', to: 'end' }, paths)
  await call('updateTopic', { maxLag: 1 }, paths)
  await call('listAlarms')
  await call('listTopics')
  await call('listGroups')
  await call('listAudit')

  const consumerId = await join('a')
  await call('register', { ...client, name: 'a' })
  await join('silent')
  await tick({ groupName: 'g' }, 'GroupChanged')
  await call('publish', { topicName: 't', msgs: [{ body: 'one' }], publishId: 'p', attempt: 2, attemptAgeMs: 1 })
  await call('getTopicQueueIds', { topicNames: ['t'] })

  const polled = await call('getConsumerGroupPolling', { ...client, consumerId, consumerGroupVersion: { g: 0 } })
  const [queue] = Object.values<Record<string, number>>(polled.consumerGroups.g.queues)
  await call('pullData', { ...client, ...queue, consumerGroupName: 'g', offsetStart: 0, offsetEnd: 50 })
  await call('publishAndUpdateResultFailMsg', {
    ...client,
    ...queue,
    failMsg: { topicName: 'g_t_fail', msgs: [{ body: 'one', retryCount: 1 }] },
  })
  await useFailed(call, client, queue, advance)
  await call('commitOffset', { ...client, queueOffsets: [{ ...queue, offset: 1 }] })
  await call('commitOffset', { ...client, queueOffsets: [{ ...queue, offset: 1 }], flag: 1 })
  await call('getMessageCount', { ...client, consumerGroupName: 'g', topics: ['t'] })
  await call('getTopic', { ...client, consumerGroupName: 'g' })
  await call('getGroupTopic', { ...client, consumerGroupNames: ['g'] })
  for (const name of ['getMeta', 'getMetaGroup', 'addLog', 'addCat', 'addOpLog', 'sendMail'] as const) {
    await call(name, client)
  }
  await call('rb', { ...client, consumerGroupNames: ['g'] })
  await call('getIp')
  await useTargets(call, advance, tick, hook)
  await call('createGroup', { name: 'claimed', mode: 'claimed' })
  await call('subscribe', {}, { ...paths, groupName: 'claimed' })
  await call('resetOffsets', { of: 'all', to: 'start' }, { groupName: 'claimed' })
  const { queues } = await call('claimQueues', { consumerGroupName: 'claimed', claimant: 'a' })
  await call('renewClaims', { consumerGroupName: 'claimed', queues: Object.values(queues) })
  await call('createGroup', { name: 'broadcast', mode: 'broadcast' })
  await call('subscribe', {}, { ...paths, groupName: 'broadcast' })
  const { id: listener } = await call('register', { ...client, name: 'listener' })
  await call('registerConsumerGroup', { ...client, consumerId: listener, consumerGroupNames: { broadcast: ['t'] } })
  await call('unsubscribe', undefined, { ...paths, groupName: 'broadcast' })
  await call('getTopicView', undefined, paths)
  await call('getGroup', undefined, paths)

  // The silent one is given up by a heartbeat of the other, who then leaves; the last one dies with nobody there.
  advance(20_000)
  await call('heartbeat', { ...client, consumerId })
  advance(20_000)
  await call('heartbeat', { ...client, consumerId })
  await call('deRegister', { ...client, id: consumerId })
  await join('last')
  await call('unsubscribe', undefined, { ...paths, groupName: 'claimed' })
  await call('removeGroup', undefined, { groupName: 'claimed' })
  for (let minute = 0; minute < 60; minute++) {
    advance(60_000)
    await tick()
  }
  await call('resetOffsets', { of: 'all', to: 'end' }, paths)
  await call('removeQueue', undefined, { ...paths, queueId: '3' })
  await tick({ groupName: 'g' }, 'GroupChanged')
  await call('createTopic', { name: 'unused' })
  await call('removeTopic', undefined, { topicName: 'unused' })
}

/** What is done with a message that has failed, by its consumer and by operators. */
async function useFailed(
  call: Containers['call'],
  client: object,
  queue: object | undefined,
  advance: (ms: number) => void,
) {
  const paths = { groupName: 'g', topicName: 't' }
  await call('subscribe', { retryCount: 0 }, paths)
  // What a container remembers of the settings before.
  advance(2_000)
  for (const body of ['two', 'three']) {
    await call('publishAndUpdateResultFailMsg', {
      ...client,
      ...queue,
      failMsg: { topicName: 'g_t_fail', msgs: [{ id: 1, body, retryCount: 1 }] },
    })
  }
  const { failed } = await call('listFailed', {}, paths)
  const [{ failedId, place }] = failed
  await call('getFailed', undefined, { ...paths, failedId })
  await call('dropFailed', { of: { failedIds: [failedId] }, reason: 'a test' }, paths)
  await call('resendFailed', { of: 'all' }, paths)
  await call('publishAndUpdateResultFailMsg', { ...client, queueId: place.queueId, ids: [place.offset] })
}

/** A webhook on this machine, at the path of PMQ's clients. */
export type Hook = { url: string }

/** Serves it. Who asks for messages is answered that the first one has failed. */
export async function serveHook() {
  const server = createServer(async (incoming, outgoing) => {
    let text = ''
    for await (const chunk of incoming.setEncoding('utf8')) text += chunk
    const { msgs = [] }: { msgs?: { id: number }[] } = JSON.parse(text)
    got.push(text)
    outgoing
      .setHeader('connection', 'close')
      .end(JSON.stringify({ suc: true, failIds: msgs.slice(0, 1).map(({ id }) => id) }))
  })
  const got: string[] = []
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = () => server.close()
  return {
    url: `http://127.0.0.1:${port}/mq/client/notify`,
    got,
    close,
    [Symbol.asyncDispose]: async () => void close(),
  }
}

/** Targets that are told, tested, handed messages, and that come and go. */
async function useTargets(
  call: Containers['call'],
  advance: (ms: number) => void,
  tick: Containers['tick'],
  { url }: Hook,
) {
  const g = { groupName: 'g', targetName: 'hook' }
  const alarms = { targetName: 'hook' }
  await call('createGroup', { name: 'pushed', mode: 'claimed' })
  await call('subscribe', { retryCount: 1 }, { groupName: 'pushed', topicName: 't' })
  await call('putTarget', { url, delivers: 'messages' }, { groupName: 'pushed', targetName: 'push' })
  await call('putTarget', { url }, g)
  await call('putAlarmTarget', { url }, alarms)
  await call('listTargets', undefined, g)
  await call('listAlarmTargets')
  await call('getTarget', undefined, g)
  await call('getAlarmTarget', undefined, alarms)
  const ofGroup = await call('addTargetSecret', {}, g)
  await call('removeTargetSecret', undefined, { ...g, secretId: ofGroup.secretId })
  const ofAlarms = await call('addAlarmTargetSecret', {}, alarms)
  await call('removeAlarmTargetSecret', undefined, { ...alarms, secretId: ofAlarms.secretId })
  await call('testTarget', undefined, g)
  await call('testAlarmTarget', undefined, alarms)
  // What a container remembers of the topic, without targets.
  advance(3_000)
  const { queues } = await call('getTopicView', undefined, { topicName: 't' })
  const partitionInfo = { queueId: queues[0].queueId }
  // Two of them go through one container, and of the second it says nothing but that the queue is busy.
  await Promise.all(
    Array.from({ length: 6 }, (_, i) => call('publish', { topicName: 't', msgs: [{ body: `m${i}`, partitionInfo }] })),
  )
  // What is told later, and what has failed for once.
  for (const ms of [2_000, 70_000]) {
    advance(ms)
    await tick()
  }
  await call('listTargetDeliveries', {}, g)
  await call('listAlarmTargetDeliveries', {}, alarms)
  for (const act of ['disableTarget', 'enableTarget', 'removeTarget'] as const) await call(act, undefined, g)
  for (const act of ['disableAlarmTarget', 'enableAlarmTarget', 'removeAlarmTarget'] as const) {
    await call(act, undefined, alarms)
  }
  await call('removeTarget', undefined, { groupName: 'pushed', targetName: 'push' })
}
