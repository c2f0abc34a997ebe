import type { AuditStore } from '../../core/audit/port.ts'
import { type ActOutcome, type AuditEntry, endOf, timeOf } from '../../core/audit/records.ts'
import { keys } from '../keys.ts'
import { type Item, num, numOf, str, strOf, ttl } from './attributes.ts'
import { exists, expressions, isNew, setAll } from './expressions.ts'
import { itemKey } from './items.ts'
import type { RegistryContext } from './registry.ts'

/** The audit log: an item for each act, for as long as TTL leaves it. */
export function createAudit({ requests, registryTable: TableName }: RegistryContext): AuditStore {
  return {
    /** 1 write unit for each KB of it. A repeat that comes late must not undo what has been added since. */
    async addAuditEntry(entry) {
      const isUnknown = expressions({ ConditionExpression: isNew })
      await requests.put('addAuditEntry', 'repeatable', { TableName, Item: itemOfAuditEntry(entry), ...isUnknown })
    },

    /** 1 write unit for each KB of the whole entry. */
    async endAuditEntry(entryId, { outcome, code, endedAtMs, after }) {
      const values: Item = {
        outcome: str(outcome),
        ...(code !== undefined && { code: str(code) }),
        ...(endedAtMs !== undefined && { endedAtMs: num(endedAtMs) }),
        ...(after !== undefined && { after: str(after) }),
      }
      const answer = await requests.update('endAuditEntry', 'repeatable', {
        TableName,
        Key: itemKey(keys.auditEntry(entryId)),
        ...expressions({ UpdateExpression: setAll(values), ConditionExpression: exists }, values),
      })
      return answer.refused ? 'unknown_entry' : 'ended'
    },

    /** 1 request; 1 read unit for each 4 KB, at most 1 MB of them. */
    async listAuditEntries({ month, below, limit }) {
      const { items, next } = await requests.queryPage('listAuditEntries', {
        TableName,
        ConsistentRead: true,
        ScanIndexForward: false,
        Limit: limit,
        ...expressions(
          { KeyConditionExpression: '#pk = :pk AND #sk < :below' },
          { pk: str(keys.auditPartition(month)), below: str(below) },
        ),
      })
      return { entries: items.map(auditEntryOf), hasMore: next !== undefined }
    },
  }
}

const itemOfAuditEntry = (entry: AuditEntry): Item => {
  const { entryId, askedAtMs: _inItsId, endedAtMs, ...texts } = entry
  const attributes = Object.entries(texts).map(([name, text]) => [name, str(text)])
  return {
    ...itemKey(keys.auditEntry(entryId)),
    ...Object.fromEntries(attributes),
    ...(endedAtMs !== undefined && { endedAtMs: num(endedAtMs) }),
    x: ttl(endOf(entry)),
  }
}

function auditEntryOf(item: Item): AuditEntry {
  const entryId = strOf(item, 'sk')
  return {
    entryId,
    askedAtMs: timeOf(entryId),
    who: strOf(item, 'who'),
    ip: strOf(item, 'ip'),
    act: strOf(item, 'act'),
    entity: strOf(item, 'entity'),
    parameters: strOf(item, 'parameters'),
    outcome: strOf(item, 'outcome') as ActOutcome,
    ...(item.request && { request: strOf(item, 'request') }),
    ...(item.code && { code: strOf(item, 'code') }),
    ...(item.endedAtMs && { endedAtMs: numOf(item, 'endedAtMs') }),
    ...(item.before && { before: strOf(item, 'before') }),
    ...(item.after && { after: strOf(item, 'after') }),
  }
}
