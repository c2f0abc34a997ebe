import { type Alarm, clearedKeptMs } from '../../core/alarms/alarm.ts'
import type { AlarmStore } from '../../core/alarms/port.ts'
import { keys } from '../keys.ts'
import { type Item, num, str, strOf, ttl } from './attributes.ts'
import { expressions, isNew } from './expressions.ts'
import { itemKey } from './items.ts'
import type { RegistryContext } from './registry.ts'

/** Alarms: an item of some 400 bytes for each. */
export function createAlarms({ requests, registryTable: TableName }: RegistryContext): AlarmStore {
  return {
    /** 1 write unit, also if refused. */
    async putAlarm(next) {
      const before = next.revision - 1
      const isAsRead = before === 0 ? isNew : '#revision = :before'
      const answer = await requests.put('putAlarm', 'once', {
        TableName,
        Item: itemOfAlarm(next),
        ...expressions({ ConditionExpression: isAsRead }, before === 0 ? {} : { before: num(before) }),
      })
      return answer.refused ? 'conflict' : 'put'
    },

    /** 1 consistent request for each 1 MB; 1 read unit for each 4 KB (some ten alarms). */
    async listAlarms() {
      const items = await requests.query('listAlarms', {
        TableName,
        ConsistentRead: true,
        ...expressions({ KeyConditionExpression: '#pk = :pk' }, { pk: str(keys.alarmsPartition) }),
      })
      return items.map((item): Alarm => JSON.parse(strOf(item, 'alarm')))
    },
  }
}

const itemOfAlarm = (alarm: Alarm): Item => ({
  ...itemKey(keys.alarm(alarm)),
  revision: num(alarm.revision),
  alarm: str(JSON.stringify(alarm)),
  ...(alarm.clearedAtMs !== undefined && { x: ttl(alarm.clearedAtMs + clearedKeptMs) }),
})
