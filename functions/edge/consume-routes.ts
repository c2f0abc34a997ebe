import { claimQueues, renewClaims } from '../../core/client/claims.ts'
import { commitOffset } from '../../core/client/commit.ts'
import { deRegister } from '../../core/client/deregister.ts'
import { heartbeat } from '../../core/client/heartbeat.ts'
import { getMessageCount } from '../../core/client/message-count.ts'
import { getGroupTopic, getMeta, getMetaGroup, getTopic } from '../../core/client/meta.ts'
import { getConsumerGroupPolling } from '../../core/client/poll.ts'
import { pullData, serializePull } from '../../core/client/pull.ts'
import { rb } from '../../core/client/rb.ts'
import { register } from '../../core/client/register.ts'
import { registerConsumerGroup } from '../../core/client/register-group.ts'
import type { HttpOptions, Routes } from './http.ts'

/** PMQ's clients report what they do and send warnings on the way; they expect no more than that it is taken. */
const accept = async () => ({ suc: true })

export const consumeRoutes = {
  register,
  registerConsumerGroup,
  deRegister,
  heartbeat,
  getConsumerGroupPolling,
  pullData,
  commitOffset,
  claimQueues,
  renewClaims,
  getMessageCount,
  getMetaGroup,
  getMeta,
  getTopic,
  getGroupTopic,
  rb,
  getIp: async (_core, _request, _parameters, callerIp) => callerIp,
  addLog: accept,
  addCat: accept,
  addOpLog: accept,
  sendMail: accept,
} satisfies Routes

/** Only a pull's answer has `batches`; every other is serialized by this as by `JSON.stringify`. */
export const consumeOptions: HttpOptions = {
  serialize: answer => serializePull(answer as Parameters<typeof serializePull>[0]),
}
