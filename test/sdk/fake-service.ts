import assert from 'node:assert/strict'
import type { CommitRequest } from '../../core/protocol/commit.ts'
import type { FailuresRequest } from '../../core/protocol/failures.ts'
import type {
  DeregisterRequest,
  HeartbeatRequest,
  PollRequest,
  RegisterGroupRequest,
  RegisterRequest,
} from '../../core/protocol/membership.ts'
import type { TopicQueueIdsRequest } from '../../core/protocol/meta.ts'
import type { PublishRequest } from '../../core/protocol/publish.ts'
import type { PullRequest } from '../../core/protocol/pull.ts'
import type { Operation } from '../../sdk/src/api.ts'
import { PmqClientError } from '../../sdk/src/errors.ts'
import type { CallOptions, Transport } from '../../sdk/src/transport.ts'
import { createFakeGroups } from './fake-groups.ts'
import { createFakeLog } from './fake-log.ts'
import type { ManualClock } from './manual-clock.ts'

/** What may happen to a request instead of an answer. */
export type Fault =
  | { kind: 'lose_request' | 'lose_answer' | 'hang' | 'unreachable' }
  | { kind: 'fail'; error: PmqClientError }
  /** As a transport of the user's own may. */
  | { kind: 'throw'; thrown: unknown }
  | { kind: 'answer'; answer: object }
  | { kind: 'delay'; ms: number }

/** Any request; each endpoint reads its own fields. */
export type AnyRequest = PublishRequest &
  TopicQueueIdsRequest &
  RegisterRequest &
  RegisterGroupRequest &
  DeregisterRequest &
  HeartbeatRequest &
  PollRequest &
  PullRequest &
  CommitRequest &
  FailuresRequest

/** A stand-in for the service, in process: real rules for what the client relies on, and faults on demand. */
export function createFakeService(clock: ManualClock) {
  const log = createFakeLog(clock)
  const groups = createFakeGroups(clock, log)
  const requests: { operation: Operation; request: AnyRequest; atMs: number }[] = []
  const inFlight = new Map<string, number>()
  const service = {
    log,
    groups,
    requests,
    /** The most requests that were under way at once, by operation. */
    mostInFlight: new Map<string, number>(),
    /** Decides the fate of each request. */
    onRequest: (_operation: Operation, _request: AnyRequest): Fault | undefined => undefined,
    /** Refuses messages for a queue. */
    refuse: (_queueId: number): string | undefined => undefined,
    count: (operation: Operation) => requests.filter(made => made.operation === operation).length,
    transport: (async (path, sent, options) => {
      const operation = path.split('/').at(-1) as Operation
      const request = JSON.parse(JSON.stringify(sent))
      const running = (inFlight.get(operation) ?? 0) + 1
      inFlight.set(operation, running)
      service.mostInFlight.set(operation, Math.max(running, service.mostInFlight.get(operation) ?? 0))
      requests.push({ operation, request, atMs: clock.monotonic() })
      try {
        return await serve(operation, request, options)
      } catch (thrown) {
        // A broken duty of the client must end the test, not be tried again.
        if (thrown instanceof assert.AssertionError) throw new PmqClientError('bad_request', thrown.message)
        throw thrown
      } finally {
        inFlight.set(operation, (inFlight.get(operation) ?? 0) - 1)
      }
    }) satisfies Transport as Transport,
  }

  async function serve(operation: Operation, request: AnyRequest, options: CallOptions): Promise<unknown> {
    const { signal } = options
    if (signal?.aborted) throw new PmqClientError('aborted', 'given up')
    const fault = service.onRequest(operation, request)
    if (operation === 'publish') log.checkAttempt(request, mayBeStored(fault))
    if (fault?.kind === 'unreachable') throw new PmqClientError('unreachable', 'nobody listens')
    if (fault?.kind === 'lose_request') throw new PmqClientError('connection_lost', 'the request was lost')
    if (fault?.kind === 'fail') throw fault.error
    if (fault?.kind === 'throw') throw fault.thrown
    if (fault?.kind === 'answer') return fault.answer
    if (fault?.kind === 'hang') {
      await clock.sleep(options.timeoutMs, signal)
      throw new PmqClientError(signal?.aborted ? 'aborted' : 'timeout', `no answer within ${options.timeoutMs} ms`)
    }
    if (fault?.kind === 'delay') await clock.sleep(fault.ms, signal)
    const answer = await handle(operation, request, signal)
    if (signal?.aborted) throw new PmqClientError('aborted', 'given up')
    if (fault?.kind === 'lose_answer') throw new PmqClientError('connection_lost', 'the answer was lost')
    return JSON.parse(JSON.stringify(answer))
  }

  async function handle(operation: Operation, request: AnyRequest, signal: AbortSignal | undefined): Promise<object> {
    switch (operation) {
      case 'publish':
        return log.publish(request, service.refuse)
      case 'getTopicQueueIds': {
        const known = (request.topicNames ?? []).filter(name => log.queueIds(name))
        return { suc: true, topicQueues: Object.fromEntries(known.map(name => [name, log.queueIds(name)])) }
      }
      case 'register':
        assert.ok(request.name && request.clientIp && request.sdkVersion && request.lan)
        return { suc: true, id: groups.register(request.name) }
      case 'registerConsumerGroup':
        return groups.join(request)
      case 'deRegister':
        if (!request.keepsPlace) groups.leave(request.id ?? 0)
        return { suc: true }
      case 'heartbeat':
        return groups.heartbeat(request.consumerId ?? 0)
      case 'getConsumerGroupPolling':
        assert.equal(request.waitMs, 0)
        return groups.poll(request)
      case 'claimQueues':
        return assert.fail('claims are tried on the service itself')
      case 'pullData': {
        const answer = await log.pull(request, signal)
        const version = groups.version(request.consumerGroupName ?? '')
        return version === undefined ? answer : { ...answer, version }
      }
      case 'commitOffset':
        return groups.commit(request)
      case 'publishAndUpdateResultFailMsg':
        return groups.takeFailures(request)
    }
  }

  return service
}

/** Whether the client has to take a request for one that may have done something. */
function mayBeStored(fault: Fault | undefined): boolean {
  return fault?.kind === 'fail' ? fault.error.inDoubt : fault?.kind !== 'unreachable'
}

export type FakeService = ReturnType<typeof createFakeService>
