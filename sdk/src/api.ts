import type { ClaimRequest, ClaimResponse } from '../../core/protocol/claims.ts'
import type { CommitRequest, CommitResponse } from '../../core/protocol/commit.ts'
import type { endpoints } from '../../core/protocol/endpoints.ts'
import type { FailuresRequest, FailuresResponse } from '../../core/protocol/failures.ts'
import type {
  DeregisterRequest,
  DeregisterResponse,
  HeartbeatRequest,
  HeartbeatResponse,
  PollRequest,
  PollResponse,
  RegisterGroupRequest,
  RegisterGroupResponse,
  RegisterRequest,
  RegisterResponse,
} from '../../core/protocol/membership.ts'
import type { TopicQueueIdsRequest, TopicQueueIdsResponse } from '../../core/protocol/meta.ts'
import type { PublishRequest, PublishResponse } from '../../core/protocol/publish.ts'
import type { PullRequest, PullResponse } from '../../core/protocol/pull.ts'
import { asClientError, PmqClientError } from './errors.ts'
import type { Identity } from './identity.ts'
import type { CallOptions, Transport } from './transport.ts'

/** The name of a request to the service, as events give it. */
export type Operation =
  | 'publish'
  | 'getTopicQueueIds'
  | 'register'
  | 'registerConsumerGroup'
  | 'deRegister'
  | 'heartbeat'
  | 'getConsumerGroupPolling'
  | 'claimQueues'
  | 'pullData'
  | 'commitOffset'
  | 'publishAndUpdateResultFailMsg'

/** What each asks and is answered. The user sees names alone: these types are made by a library that he does not have. */
type Calls = {
  publish: [PublishRequest, PublishResponse]
  getTopicQueueIds: [TopicQueueIdsRequest, TopicQueueIdsResponse]
  register: [RegisterRequest, RegisterResponse]
  registerConsumerGroup: [RegisterGroupRequest, RegisterGroupResponse]
  deRegister: [DeregisterRequest, DeregisterResponse]
  heartbeat: [HeartbeatRequest, HeartbeatResponse]
  getConsumerGroupPolling: [PollRequest, PollResponse]
  claimQueues: [ClaimRequest, ClaimResponse]
  pullData: [PullRequest, PullResponse]
  commitOffset: [CommitRequest, CommitResponse]
  publishAndUpdateResultFailMsg: [FailuresRequest, FailuresResponse]
}

/** The service as functions. Each rejects with a `PmqClientError`; an answer of `suc: false` is returned. */
export type Api = {
  [Name in Operation]: (request: Calls[Name][0], options: CallOptions) => Promise<Calls[Name][1]>
}

// The table of endpoints brings the schemas and their library along; the compiler compares these paths with it instead.
const paths = {
  publish: '/api/client/consumer/publish',
  getTopicQueueIds: '/api/server/meta/getTopicQueueIds',
  register: '/api/client/consumer/register',
  registerConsumerGroup: '/api/client/consumer/registerConsumerGroup',
  deRegister: '/api/client/consumer/deRegister',
  heartbeat: '/api/client/consumer/heartbeat',
  getConsumerGroupPolling: '/api/client/consumer/getConsumerGroupPolling',
  claimQueues: '/api/client/consumer/claimQueues',
  pullData: '/api/client/consumer/pullData',
  commitOffset: '/api/client/consumer/commitOffset',
  publishAndUpdateResultFailMsg: '/api/client/consumer/publishAndUpdateResultFailMsg',
} as const satisfies { [Name in Operation]: (typeof endpoints)[Name]['path'] }

/** Gives the endpoints their types and adds to each request who asks. */
export function createApi(transport: Transport, identity: Identity): Api {
  const call =
    <Name extends Operation>(name: Name) =>
    async (request: Calls[Name][0], options: CallOptions): Promise<Calls[Name][1]> => {
      let answer: unknown
      try {
        answer = await transport(paths[name], { ...identity, ...request }, options)
      } catch (thrown) {
        // A transport of the user's own may throw what it likes.
        throw asClientError(thrown, 'connection_lost')
      }
      // Of the rest each reader takes what it finds: an older service leaves out what it does not know.
      const { suc } = (answer ?? {}) as { suc?: unknown }
      if (typeof suc !== 'boolean') throw new PmqClientError('bad_answer', `The answer to ${name} has no suc.`)
      return answer as Calls[Name][1]
    }
  return {
    publish: call('publish'),
    getTopicQueueIds: call('getTopicQueueIds'),
    register: call('register'),
    registerConsumerGroup: call('registerConsumerGroup'),
    deRegister: call('deRegister'),
    heartbeat: call('heartbeat'),
    getConsumerGroupPolling: call('getConsumerGroupPolling'),
    claimQueues: call('claimQueues'),
    pullData: call('pullData'),
    commitOffset: call('commitOffset'),
    publishAndUpdateResultFailMsg: call('publishAndUpdateResultFailMsg'),
  }
}

/** The answer, if the service said yes; its words as an error, if it said no. */
export function expectSuccess<T extends { suc: boolean; msg?: string | undefined }>(name: Operation, answer: T): T {
  if (!answer.suc) throw new PmqClientError('refused', `${name} was refused: ${answer.msg ?? 'no reason given'}`)
  return answer
}
