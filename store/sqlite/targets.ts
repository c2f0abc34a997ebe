import type { TargetStore } from '../../core/notify/port.ts'
import { type Delivery, deliveriesKeptMs, type Target } from '../../core/notify/target.ts'
import { keys } from '../keys.ts'
import type { Database } from './database.ts'
import type { Records } from './records.ts'

export function createTargets(database: Database, written: Records, durable: Records): TargetStore {
  return {
    createTarget: target =>
      database.write(() => {
        const { owner, name } = target
        if (written.get(keys.target(target))) return 'exists'
        written.put(keys.target(target), target)
        if (owner !== 'alarms') written.put(keys.targetOfGroup(owner.groupName, name), {})
        return 'created'
      }),

    replaceTarget: next =>
      database.write(() => {
        const current = written.get<Target>(keys.target(next))
        if (current?.revision !== next.revision - 1) return { outcome: 'conflict', current }
        written.put(keys.target(next), next)
        return { outcome: 'replaced' }
      }),

    removeTarget: ref =>
      database.write(() => {
        if (!written.delete(keys.target(ref))) return 'unknown_target'
        if (ref.owner !== 'alarms') written.delete(keys.targetOfGroup(ref.owner.groupName, ref.name))
        return 'removed'
      }),

    readTargets: owner => database.read(() => durable.list<Target>(keys.targetsPartition(owner)).map(({ doc }) => doc)),

    listGroupsWithTargets: () =>
      database.read(() => {
        const found = durable.list(keys.targetGroupsPartition)
        return [...new Set(found.map(({ sk }) => sk.slice(0, sk.indexOf('#'))))]
      }),

    setNotifies: (topicName, groupName, notifies) =>
      database.write(() => {
        const key = keys.subscriber(topicName, groupName)
        if (!written.get(key)) return 'unknown_subscriber'
        written.put(key, notifies ? { notifies } : {})
        return 'set'
      }),

    addDelivery: (ref, delivery) =>
      database.write(() => written.put(keys.delivery(ref, delivery), delivery, delivery.atMs + deliveriesKeptMs)),

    listDeliveries: (ref, { beforeMs = Number.MAX_SAFE_INTEGER, limit }) =>
      database.read(() =>
        durable.listDown<Delivery>(keys.deliveriesPartition(ref), keys.deliveriesBefore(beforeMs), limit),
      ),
  }
}
