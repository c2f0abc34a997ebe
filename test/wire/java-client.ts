import type { AssignedQueue, GroupMeta } from '../../core/protocol/membership.ts'
import type { PulledMessage } from '../../core/protocol/pull.ts'
import { type Service, turn } from './service.ts'

/**
 * What PMQ's unmodified Java client 5.5.1 does with a group, as far as the service sees it. It polls again at once after
 * every answer. When `rbVersion` has risen it stops all of its queues, commits them finally, takes those of the answer, and
 * starts them after some more answers; when only `metaVersion` has, it takes the data of the queues that it has. What it
 * fails to handle it publishes to the fail topic with a count that is one higher, as long as that is not above the
 * `retryCount` that it was told; of a fail topic it handles what is below.
 */
export type JavaClient = {
  readonly id: number
  /** What the group is called for it. */
  readonly groupName: string
  /** What it has handled, in order. */
  readonly seen: readonly Handled[]
  /** The queues of topics that it works on now. */
  queueIds(): number[]
  /** How often it has polled, and how often it has begun from the very beginning. */
  readonly counts: { polls: number; restarts: number }
  /** Goes as a process does that is shut down: stops, commits, leaves. */
  close(): Promise<void>
  /** Goes as a process does that is killed. */
  kill(): void
}

export type Handled = { queueId: number; body: string; by: string }

export type JavaClientOptions = {
  origin?: string
  topics?: string[]
  subEnv?: string
  seen?: Handled[]
  /** Whether its handler fails with a message. */
  fails?: (body: string) => boolean
}

/** So many answers have to come after a change of the assignment before it starts. */
const rbTimes = 4
const commitEveryMs = 500
const pullPauseMs = 500
const heartbeatEveryMs = 10_000

type Running = {
  queue: AssignedQueue
  position: number
  done: number
  sent: number
  isStopped: boolean
  busy: Promise<unknown>
}

export async function startJavaClient(
  service: Service,
  name: string,
  { origin = 'g1', topics = ['t1'], subEnv = 'default', seen = [], fails = () => false }: JavaClientOptions = {},
): Promise<JavaClient> {
  const me = { lan: 'java', sdkVersion: '5.5.1', clientIp: '10.1.1.1' }
  const { clock } = service
  const gone = new AbortController()
  const counts = { polls: 0, restarts: 0 }
  let id = 0
  let groupName = origin
  let meta: GroupMeta | undefined
  let answers = 0
  let queues: AssignedQueue[] = []
  let running: Running[] = []

  async function register() {
    id = (await service.call('register', { ...me, name })).id ?? 0
    const joined = await service.call('registerConsumerGroup', {
      ...me,
      consumerId: id,
      consumerName: name,
      subEnv,
      consumerGroupNames: { [origin]: topics },
    })
    if (!joined.suc) throw new Error(joined.msg)
    groupName = joined.consumerGroupNameNew?.[origin] ?? origin
    meta = undefined
    queues = []
  }

  async function work(own: Running) {
    while (!own.isStopped && !gone.signal.aborted) {
      const { queueId, pullBatchSize, topicName, consumerGroupName, stopFlag, offsetVersion } = own.queue
      const offsetStart = own.position
      const asked = { queueId, offsetStart, offsetEnd: offsetStart + pullBatchSize, topicName, consumerGroupName }
      const { msgs = [] } = stopFlag === 1 ? {} : await service.call('pullData', { ...me, ...asked })
      // What was pulled under another offsetVersion is dropped.
      const isStale = own.isStopped || own.queue.offsetVersion !== offsetVersion
      for (const message of isStale ? [] : msgs) {
        own.busy = handle(own, message)
        if (!(await own.busy)) break
        own.position = message.id
        own.done = message.id
      }
      if (isStale || msgs.length === 0) await clock.sleep(pullPauseMs, gone.signal)
    }
  }

  /** Waits until it is due, handles it, and says what came of it, whose answer it does not look at. False: it was stopped. */
  async function handle(own: Running, message: PulledMessage): Promise<boolean> {
    if (own.isStopped) return false
    const { queueId, topicType, originTopicName, consumerGroupName, retryCount } = own.queue
    if (topicType === 2 && retryCount <= message.retryCount) return true
    const sentAtMs = Date.parse(message.sendTime.replace(/ (.*):/, 'T$1.').concat('Z'))
    while (clock.now() < sentAtMs + own.queue.delayProcessTime * 1000) {
      await clock.sleep(pullPauseMs, gone.signal)
      if (own.isStopped || gone.signal.aborted) return false
    }
    seen.push({ queueId, body: message.body, by: name })
    const again = message.retryCount + 1
    const hasFailed = fails(message.body)
    const failMsg = hasFailed &&
      retryCount >= again && {
        failMsg: {
          ...me,
          msgs: [{ id: message.id, tag: message.tag, bizId: message.bizId, body: message.body, retryCount: again }],
          topicName: `${consumerGroupName}_${originTopicName}_fail`,
          synFlag: 1,
        },
      }
    const ids = !hasFailed && topicType === 2 && { ids: [message.id] }
    if (failMsg || ids) await service.send('publishAndUpdateResultFailMsg', { ...me, queueId, ...ids, ...failMsg })
    return true
  }

  const commit = (which: Running[], flag: 0 | 1) => {
    if (which.length === 0) return
    const queueOffsets = which.map(own => {
      own.sent = own.done
      const { queueOffsetId, offsetVersion, consumerGroupName, topicName } = own.queue
      return { queueOffsetId, offsetVersion, offset: own.done, consumerGroupName, topicName }
    })
    return service.call('commitOffset', { ...me, queueOffsets, flag })
  }

  /** Only what the timer has committed once is in the final commit. */
  async function stopQueues() {
    for (const own of running) own.isStopped = true
    // It waits for what runs.
    await Promise.all(running.map(own => own.busy))
    const committed = running.filter(own => own.sent >= 0)
    running = []
    await commit(committed, 1)
  }

  function start() {
    const busy = Promise.resolve()
    running = queues.map(queue => ({
      queue,
      position: queue.offset,
      done: queue.offset,
      sent: -1,
      isStopped: false,
      busy,
    }))
    for (const own of running) void work(own)
  }

  async function take(group: { meta: GroupMeta; queues: Record<string, AssignedQueue> }) {
    const told = Object.values(group.queues)
    if (meta === undefined || group.meta.rbVersion > meta.rbVersion) {
      await stopQueues()
      queues = told
      answers = 0
    } else if (group.meta.metaVersion > meta.metaVersion) {
      for (const own of running) {
        const fresh = told.find(queue => queue.queueId === own.queue.queueId)
        if (!fresh) continue
        if (fresh.offsetVersion !== own.queue.offsetVersion) {
          Object.assign(own, { position: fresh.offset, done: fresh.offset, sent: -1 })
        }
        own.queue = fresh
      }
      queues = queues.map(queue => told.find(fresh => fresh.queueId === queue.queueId) ?? queue)
    }
    meta = group.meta
  }

  async function poll() {
    while (!gone.signal.aborted) {
      counts.polls++
      const request = { ...me, consumerId: id, consumerGroupVersion: { [groupName]: meta?.version ?? 0 } }
      const { consumerGroups } = await service.call('getConsumerGroupPolling', request)
      if (gone.signal.aborted) return
      const group = consumerGroups?.[groupName]
      if (group) await take(group)
      if (meta && running.length === 0 && ++answers >= rbTimes) start()
    }
  }

  async function commitOften() {
    while (!gone.signal.aborted) {
      await clock.sleep(commitEveryMs, gone.signal)
      await commit(
        running.filter(own => own.done > own.queue.offset && own.done !== own.sent),
        0,
      )
    }
  }

  async function beat() {
    await clock.sleep(1_000, gone.signal)
    for (let beats = 0; !gone.signal.aborted; beats++) {
      const { deleted } = await service.call('heartbeat', { ...me, consumerId: id, asyn: beats % 3 === 0 ? 0 : 1 })
      if (deleted === 1 && beats % 3 === 0) {
        counts.restarts++
        await stopQueues()
        await register()
      }
      await clock.sleep(heartbeatEveryMs, gone.signal)
    }
  }

  await register()
  for (const loop of [poll, commitOften, beat]) void loop()
  return {
    get id() {
      return id
    },
    get groupName() {
      return groupName
    },
    seen,
    counts,
    queueIds: () =>
      running
        .filter(own => own.queue.topicType === 1)
        .map(own => own.queue.queueId)
        .sort((a, b) => a - b),
    async close() {
      await stopQueues()
      gone.abort()
      await service.call('deRegister', { ...me, id })
    },
    kill: () => gone.abort(),
  }
}

/** Lets so much time pass, in which whoever runs does what is due. */
export async function live(service: Service, ms: number, stepMs = 50): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += stepMs) {
    service.clock.advance(stepMs)
    await turn()
  }
}
