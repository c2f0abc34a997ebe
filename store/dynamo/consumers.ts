import type { Consumer, Member } from '../../core/model.ts'
import { type RegistryStore, StoreError } from '../../core/store.ts'
import { keys } from '../keys.ts'
import { bool, type Item, num, numOf, str, strSet } from './attributes.ts'
import { allOf, exists, expressions, isNew, setAll } from './expressions.ts'
import { consumerOf, itemKey, itemOfConsumer, memberAttributes, reportedAttributes } from './items.ts'
import type { Operation } from './meter.ts'
import type { RegistryContext } from './registry.ts'

type Consumers = Pick<
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

/** How often an operation of several steps begins again, when others change what it has read. */
const rounds = 4

const isMember = 'attribute_not_exists(#isLost)'

/** Replaces a member's record but for when it joined first. */
const joinUpdate = ({ joinedAtMs: _first, ...attributes }: Item) => {
  const optional = ['instanceId', 'predecessors', 'hasStopped', 'isLost'].filter(name => !(name in attributes))
  const remove = optional.length > 0 ? ` REMOVE ${optional.map(name => `#${name}`).join(', ')}` : ''
  return `${setAll(attributes)}, #joinedAtMs = if_not_exists(#joinedAtMs, :joinedAtMs)${remove}`
}

/** Consumers, their names, and the groups that they are in. */
export function createConsumers({ requests, registryTable: TableName }: RegistryContext): Consumers {
  /** Replaces attributes of a consumer that must exist: an update alone would create one. */
  async function change(operation: Operation, consumerId: number, attributes: Item): Promise<Consumer | undefined> {
    const clauses = { consumerIsKnown: exists }
    const answer = await requests.update(operation, 'repeatable', {
      TableName,
      Key: itemKey(keys.consumer(consumerId)),
      ReturnValues: 'ALL_NEW',
      ...expressions({ UpdateExpression: setAll(attributes), ConditionExpression: allOf(clauses) }, attributes),
    })
    return answer.refused || answer.item === undefined ? undefined : consumerOf(answer.item)
  }

  const read = (operation: Operation, consumerId: number) =>
    requests.get(operation, { TableName, Key: itemKey(keys.consumer(consumerId)), ConsistentRead: true })

  return {
    /**
     * A transaction of 3 items: 6 write units; 7 if the name is known. Repeating it finds what it has written itself.
     */
    async registerConsumer(consumer: Consumer): Promise<number> {
      const { consumerId, name } = consumer
      const nameItem = { ...itemKey(keys.consumerName(name)), consumerId: num(consumerId) }
      for (let round = 0; round < rounds; round++) {
        const condition = expressions({ ConditionExpression: isNew })
        const answer = await requests.transact('registerConsumer', 'repeatable', [
          { Put: { TableName, Item: nameItem, ...condition, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } },
          { Put: { TableName, Item: itemOfConsumer(consumer), ...condition } },
          { Put: { TableName, Item: { ...itemKey(keys.newcomer(consumerId)), consumerId: num(consumerId) } } },
        ])
        if (!answer.refused) return consumerId
        const known = answer.refusals[0]?.old
        if (known === undefined)
          throw new TypeError(`consumer id ${consumerId} is in use under another name than "${name}"`)
        const knownId = numOf(known, 'consumerId')
        if ((await change('registerConsumer', knownId, reportedAttributes(consumer))) !== undefined) return knownId
      }
      throw new StoreError('throttled', `registerConsumer: "${name}" is being registered and removed over and over`)
    },

    /** 1 consistent request for each 100 consumers; 1 read unit for each. Consistent, since who is missing is given up. */
    async readConsumers(consumerIds: number[]): Promise<Consumer[]> {
      const wanted = [...new Set(consumerIds)]
      const items = await requests.getMany(
        'readConsumers',
        TableName,
        wanted.map(consumerId => itemKey(keys.consumer(consumerId))),
      )
      const found = new Map(items.map(consumerOf).map(consumer => [consumer.consumerId, consumer]))
      return wanted.flatMap(consumerId => found.get(consumerId) ?? [])
    },

    /** 1 write unit. */
    heartbeat: (consumerId, nowMs) => change('heartbeat', consumerId, { heartbeatAtMs: num(nowMs) }),

    /** 1 consistent request for each 1 MB; 1 read unit for each 4 KB (some 80 consumers). */
    async listNewcomers(): Promise<number[]> {
      const items = await requests.query('listNewcomers', {
        TableName,
        ConsistentRead: true,
        ...expressions({ KeyConditionExpression: '#pk = :pk' }, { pk: str(keys.newcomersPartition) }),
      })
      return items.map(item => numOf(item, 'consumerId'))
    },

    /** A transaction of 3 items: 6 write units. */
    async joinGroup(member: Member) {
      const { groupName, consumerId } = member
      const attributes = memberAttributes(member)
      const answer = await requests.transact('joinGroup', 'repeatable', [
        {
          Update: {
            TableName,
            Key: itemKey(keys.consumer(consumerId)),
            ...expressions(
              { UpdateExpression: 'ADD #groupNames :joined', ConditionExpression: exists },
              { joined: strSet([groupName]) },
            ),
          },
        },
        {
          Update: {
            TableName,
            Key: itemKey(keys.member(groupName, consumerId)),
            ...expressions({ UpdateExpression: joinUpdate(attributes) }, attributes),
          },
        },
        { Delete: { TableName, Key: itemKey(keys.newcomer(consumerId)) } },
      ])
      return answer.refused ? 'unknown_consumer' : 'joined'
    },

    /** 1 write unit. The consumer's own record stays: who leaves has been removed before. */
    async leaveGroup(groupName: string, consumerId: number) {
      const answer = await requests.delete('leaveGroup', 'once', {
        TableName,
        Key: itemKey(keys.member(groupName, consumerId)),
        ...expressions({ ConditionExpression: exists }),
      })
      return answer.refused ? 'not_a_member' : 'left'
    },

    /** 1 write unit. */
    async stopMember(groupName: string, consumerId: number) {
      const answer = await requests.update('stopMember', 'repeatable', {
        TableName,
        Key: itemKey(keys.member(groupName, consumerId)),
        ...expressions(
          { UpdateExpression: 'SET #hasStopped = :yes', ConditionExpression: allOf({ exists, isMember }) },
          { yes: bool(true) },
        ),
      })
      return answer.refused ? 'not_a_member' : 'noted'
    },

    /** 1 write unit; 2 of one that had stopped. The condition is repeated there, since it may have joined again. */
    async loseMember(groupName: string, consumerId: number) {
      const Key = itemKey(keys.member(groupName, consumerId))
      for (let round = 0; round < rounds; round++) {
        const goesOn = 'attribute_not_exists(#hasStopped)'
        const answer = await requests.update('loseMember', 'once', {
          TableName,
          Key,
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
          ...expressions(
            { UpdateExpression: 'SET #isLost = :yes', ConditionExpression: allOf({ exists, isMember, goesOn }) },
            { yes: bool(true) },
          ),
        })
        if (!answer.refused) return 'lost'
        if (!answer.old?.hasStopped || answer.old.isLost) return 'not_a_member'
        const left = await requests.delete('loseMember', 'once', {
          TableName,
          Key,
          ...expressions({ ConditionExpression: 'attribute_exists(#hasStopped)' }),
        })
        if (!left.refused) return 'left'
      }
      throw new StoreError('throttled', `loseMember: member ${consumerId} of ${groupName} changes too fast`)
    },

    /**
     * A read and a transaction of 3 items: 1 read unit, 6 write units. The condition makes sure that what is removed is
     * what was read: the caller leaves the groups that it is answered with.
     */
    async removeConsumer(consumerId, options) {
      for (let round = 0; round < rounds; round++) {
        const item = await read('removeConsumer', consumerId)
        if (item === undefined) return undefined
        const consumer = consumerOf(item)
        if (options !== undefined && consumer.heartbeatAtMs >= options.heartbeatBeforeMs) return undefined

        const clauses = {
          isSilentStill: '#heartbeatAtMs = :heartbeatAtMs',
          groupsAreAsRead: item.groupNames ? '#groupNames = :groupNames' : 'attribute_not_exists(#groupNames)',
        }
        const answer = await requests.transact('removeConsumer', 'once', [
          {
            Delete: {
              TableName,
              Key: itemKey(keys.consumer(consumerId)),
              ...expressions(
                { ConditionExpression: allOf(clauses) },
                {
                  heartbeatAtMs: num(consumer.heartbeatAtMs),
                  ...(item.groupNames && { groupNames: item.groupNames }),
                },
              ),
            },
          },
          { Delete: { TableName, Key: itemKey(keys.consumerName(consumer.name)) } },
          { Delete: { TableName, Key: itemKey(keys.newcomer(consumerId)) } },
        ])
        if (!answer.refused) return consumer
      }
      throw new StoreError('throttled', `removeConsumer: consumer ${consumerId} changes faster than it can be removed`)
    },
  }
}
