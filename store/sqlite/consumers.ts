import type { Consumer, Member } from '../../core/model.ts'
import type { RegistryStore } from '../../core/store.ts'
import { keys } from '../keys.ts'
import type { Database } from './database.ts'
import type { Records } from './records.ts'

type ConsumerOperations = Pick<
  RegistryStore,
  | 'registerConsumer'
  | 'readConsumers'
  | 'heartbeat'
  | 'listNewcomers'
  | 'joinGroup'
  | 'leaveGroup'
  | 'stopMember'
  | 'loseMember'
  | 'removeConsumer'
>

type NameRecord = { consumerId: number }

/** `isLost`: it is no member any more. */
export type MemberRecord = Member & { isLost?: boolean }

export function createConsumers(database: Database, written: Records, durable: Records): ConsumerOperations {
  return {
    registerConsumer: consumer =>
      database.write(() => {
        const { consumerId } = written.get<NameRecord>(keys.consumerName(consumer.name)) ?? consumer
        const known = written.get<Consumer>(keys.consumer(consumerId))
        if (!known) written.put(keys.newcomer(consumerId), {})
        written.put(keys.consumerName(consumer.name), { consumerId })
        written.put(keys.consumer(consumerId), {
          ...consumer,
          consumerId,
          groupNames: known?.groupNames ?? consumer.groupNames,
        })
        return consumerId
      }),

    readConsumers: consumerIds =>
      database.read(() =>
        consumerIds
          .map(consumerId => durable.get<Consumer>(keys.consumer(consumerId)))
          .filter(consumer => consumer !== undefined),
      ),

    heartbeat: (consumerId, nowMs) =>
      database.write(() => {
        const consumer = written.get<Consumer>(keys.consumer(consumerId))
        if (!consumer) return undefined
        const alive = { ...consumer, heartbeatAtMs: nowMs }
        written.put(keys.consumer(consumerId), alive)
        return alive
      }),

    listNewcomers: () => database.read(() => durable.list(keys.newcomersPartition).map(({ sk }) => Number(sk))),

    joinGroup: member =>
      database.write(() => {
        const consumer = written.get<Consumer>(keys.consumer(member.consumerId))
        if (!consumer) return 'unknown_consumer'
        const key = keys.member(member.groupName, member.consumerId)
        const joinedAtMs = written.get<Member>(key)?.joinedAtMs ?? member.joinedAtMs
        written.put(key, { ...member, joinedAtMs })
        const groupNames = [...new Set([...consumer.groupNames, member.groupName])].sort()
        written.put(keys.consumer(member.consumerId), { ...consumer, groupNames })
        written.delete(keys.newcomer(member.consumerId))
        return 'joined'
      }),

    leaveGroup: (groupName, consumerId) =>
      database.write(() => (written.delete(keys.member(groupName, consumerId)) ? 'left' : 'not_a_member')),

    stopMember: (groupName, consumerId) =>
      database.write(() => {
        const key = keys.member(groupName, consumerId)
        const member = written.get<MemberRecord>(key)
        if (!member || member.isLost) return 'not_a_member'
        written.put(key, { ...member, hasStopped: true })
        return 'noted'
      }),

    loseMember: (groupName, consumerId) =>
      database.write(() => {
        const key = keys.member(groupName, consumerId)
        const member = written.get<MemberRecord>(key)
        if (!member || member.isLost) return 'not_a_member'
        if (member.hasStopped) {
          written.delete(key)
          return 'left'
        }
        written.put(key, { ...member, isLost: true })
        return 'lost'
      }),

    removeConsumer: (consumerId, options) =>
      database.write(() => {
        const consumer = written.get<Consumer>(keys.consumer(consumerId))
        if (!consumer || (options && consumer.heartbeatAtMs >= options.heartbeatBeforeMs)) return undefined
        written.delete(keys.consumer(consumerId))
        written.delete(keys.consumerName(consumer.name))
        written.delete(keys.newcomer(consumerId))
        return consumer
      }),
  }
}
