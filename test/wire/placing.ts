import assert from 'node:assert/strict'
import { assignment, base } from './scene.ts'
import type { Service } from './service.ts'

export type Start = {
  instanceId?: string
  groups?: Record<string, string[]>
  returning?: boolean
  clientIp?: string
}

/** Registers a consumer and asks for it to join, `g1` with `t1` unless it says otherwise. */
export async function ask(service: Service, name: string, { groups = { g1: ['t1'] }, clientIp, ...rest }: Start) {
  const registered = { ...base, name, ...(clientIp !== undefined && { clientIp }) }
  const { id: consumerId = 0 } = await service.call('register', registered)
  assert.ok(consumerId > 0)
  const request = { ...base, consumerId, consumerName: name, consumerGroupNames: groups, ...rest }
  return { consumerId, ...(await service.call('registerConsumerGroup', request)) }
}

/** Starts a consumer that has to be let in. */
export async function start(service: Service, name: string, options: Start = {}): Promise<number> {
  const { consumerId, suc, msg } = await ask(service, name, options)
  assert.equal(suc, true, msg)
  return consumerId
}

export async function members(service: Service, groupName = 'g1') {
  return (await service.call('getGroup', undefined, { groupName })).members
}

export const memberIds = async (service: Service, groupName = 'g1') =>
  (await members(service, groupName)).map(member => member.consumerId)

/** By queue id, the `offsetVersion` under which a consumer owns it. */
export async function owned(service: Service, consumerId: number, groupName = 'g1'): Promise<Record<number, number>> {
  const { queues } = await assignment(service, consumerId, groupName)
  return Object.fromEntries(queues.map(({ queueId, offsetVersion }) => [queueId, offsetVersion]))
}

export async function isDeleted(service: Service, consumerId: number): Promise<boolean> {
  return (await service.call('heartbeat', { ...base, consumerId, asyn: 0 })).deleted === 1
}
