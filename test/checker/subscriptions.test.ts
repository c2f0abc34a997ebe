import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { checkHistory } from './check.ts'
import { createHistory, type History } from './history.ts'

const found = ({ events }: History) => checkHistory(events).map(({ property }) => property)

function publish(history: History, value: string, queueId: number, offset: number, key?: string, publishId = value) {
  const op = history.publishInvoke('p', { publishId, messages: [{ value, ...(key !== undefined && { key }) }] })
  history.publishOk('p', op, [{ value, queueId, offset }])
}

function consume(history: History, group: string, value: string, queueId: number, offset: number) {
  history.pullOk('c', { group, queueId, offsetVersion: 1, from: offset - 1, messages: [{ offset, value }] })
  const handled = { group, queueId, offset, value }
  history.handleStart('c', handled)
  history.handleEnd('c', handled, 'ok')
}

suite('a group whose subscription has ended and begun again', () => {
  function resubscribe(): History {
    const history = createHistory(() => 0)
    history.unsubscribed('o', 'g', 'topic')
    publish(history, 'a', 1, 1)
    history.subscribed('o', 'g', 'topic')
    publish(history, 'b', 1, 2)
    return history
  }

  test('need not have what was sent meanwhile, in its new place', () => {
    const history = resubscribe()
    history.begins('c', { group: 'g@7', queueId: 1, offset: 1 })
    history.assignmentGained('c', { group: 'g@7', queueId: 1, offset: 1, offsetVersion: 1 })
    consume(history, 'g@7', 'b', 1, 2)
    history.drained('o', { group: 'g' })
    assert.deepEqual(found(history), [])
  })

  test('has to have what was sent afterwards', () => {
    const history = resubscribe()
    history.drained('o', { group: 'g' })
    assert.deepEqual(found(history), ['P1/Q01'])
  })

  test('must not be told a place beyond what it has finished', () => {
    const history = resubscribe()
    consume(history, 'g@7', 'b', 1, 2)
    history.assignmentGained('c', { group: 'g@7', queueId: 1, offset: 2, offsetVersion: 1 })
    assert.deepEqual(found(history), ['Q07'])
  })
})

test('a copy of a group has what was sent when it was there, unless its origin is not subscribed', () => {
  const history = createHistory(() => 0)
  publish(history, 'a', 1, 1)
  history.subscribed('c', 'g~1')
  publish(history, 'b', 1, 2)
  history.drained('o', { group: 'g~1' })
  assert.deepEqual(found(history), ['P1/Q01'])
  history.unsubscribed('o', 'g', 'topic')
  assert.deepEqual(found(history), [])
})

suite('a message of a key that is stored twice', () => {
  function storeTwice(changes: (history: History) => void): History {
    const history = createHistory(() => 0)
    const messages = [{ value: 'a', key: 'k' }]
    history.publishInfo('p', history.publishInvoke('p', { publishId: 'a', messages }))
    changes(history)
    const op = history.publishInvoke('p', { publishId: 'a', attempt: 2, messages })
    history.publishOk('p', op, [{ value: 'a', queueId: 2, offset: 1 }])
    history.pullOk('r', { queueId: 1, from: 0, messages: [{ offset: 1, value: 'a' }] })
    return history
  }

  test('is excused where the queues had changed in between', () => {
    const history = storeTwice(history => history.queuesChanged('o', 'topic', false))
    assert.deepEqual(found(history), [])
  })

  test('is not excused otherwise', () => {
    assert.ok(found(storeTwice(() => {})).includes('P8'))
  })
})
