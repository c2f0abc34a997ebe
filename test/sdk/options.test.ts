import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { inspect } from 'node:util'
import { createClient } from '../../sdk/src/client.ts'
import type { ClientOptions } from '../../sdk/src/client-options.ts'
import { type ConsumerOptions, orderingOf, resolveConsumerOptions } from '../../sdk/src/consumer-options.ts'
import { type ProducerOptions, producerDefaults, resolveProducerOptions } from '../../sdk/src/producer-options.ts'

const topics = { orders: () => undefined }

function refuses(what: string, act: () => unknown, expected: RegExp) {
  test(`refuses ${what}`, () => {
    assert.throws(act, { name: 'PmqClientError', code: 'invalid_options', message: expected })
  })
}

suite('producer options', () => {
  const resolve = (options: unknown) => () => resolveProducerOptions(options as ProducerOptions)
  refuses('an unknown name', resolve({ lingerMS: 1 }), /unknown option "lingerMS"; there are lingerMs, max/)
  refuses('names of Object itself', resolve({ toString: 1 }), /unknown option "toString"/)
  refuses('a number out of bounds', resolve({ maxBatchMessages: 1001 }), /maxBatchMessages is 1001; .* 1 to 1000/)
  refuses('a fraction', resolve({ maxInFlight: 1.5 }), /maxInFlight is 1.5; it must be a whole number/)
  refuses('a word that is none', resolve({ whenFull: 'drop' }), /whenFull is "drop"; it must be 'wait' or 'reject'/)
  refuses(
    'a buffer smaller than a batch',
    resolve({ maxBufferedMessages: 10 }),
    /maxBufferedMessages \(10\) must be at least maxBatchMessages \(1000\)/,
  )
  refuses(
    'a buffer of fewer bytes than a batch',
    resolve({ maxBufferedBytes: 1000 }),
    /maxBufferedBytes \(1000\) must be at least maxBatchBytes \(524288\)/,
  )
  refuses(
    'a linger beyond the deadline',
    resolve({ lingerMs: 500, publishTimeoutMs: 500 }),
    /lingerMs \(500\) must be below publishTimeoutMs \(500\)/,
  )
  refuses('what is no object', resolve(7), /its options must be an object/)

  test('fills in the defaults, also for undefined', () => {
    assert.deepEqual(resolveProducerOptions({ lingerMs: undefined, maxInFlight: 2 }), {
      ...producerDefaults,
      maxInFlight: 2,
    })
  })
})

suite('consumer options', () => {
  const resolve = (options: unknown) => () => resolveConsumerOptions(options as ConsumerOptions)
  refuses('no group', resolve({ topics }), /groupName is missing/)
  refuses('an empty group name', resolve({ groupName: '', topics }), /groupName is ""; it must be a non-empty string/)
  refuses('no topics', resolve({ groupName: 'g' }), /topics is missing/)
  refuses('no topic', resolve({ groupName: 'g', topics: {} }), /topics is an object; .* at least one/)
  refuses('a handler that is no function', resolve({ groupName: 'g', topics: { a: 1 } }), /a function for each topic/)
  refuses('an unknown name', resolve({ groupName: 'g', topics, threads: 2 }), /unknown option "threads"/)
  const withOption = (option: object) => resolve({ groupName: 'g', topics, ...option })
  for (const ordering of ['topic', null, 7, { orders: 'offset' }, { orders: null }]) {
    refuses(`an ordering that is none (${JSON.stringify(ordering)})`, withOption({ ordering }), /'queue' or 'key', or/)
  }
  refuses('a commit that is none', withOption({ commit: 'never' }), /commit is "never"; it must be 'auto' or 'manual'/)
  for (const listeners of [null, () => true, { prehandle: () => true }, { filter: true }]) {
    refuses('listeners that are none', withOption({ listeners }), /functions filter, preHandle, postHandle, or some/)
  }
  refuses('a warning after no time', withOption({ warnTimeoutMs: 0 }), /warnTimeoutMs is 0; .* from 1 to 86400000/)
  test('finds the ordering of a topic', () => {
    const of = (ordering: ConsumerOptions['ordering'], topicName: string) =>
      orderingOf(resolveConsumerOptions({ groupName: 'g', topics, ordering }), topicName)
    assert.deepEqual(
      [of(undefined, 'orders'), of('key', 'orders'), of({ orders: 'key' }, 'orders')],
      ['queue', 'key', 'key'],
    )
    for (const topicName of ['mails', 'toString', '__proto__']) assert.equal(of({ orders: 'key' }, topicName), 'queue')
  })
  const of = (instanceId: unknown) => resolve({ groupName: 'g', topics, instanceId })
  refuses('an empty instance id', of(''), /instanceId is ""; it must be 1 to 100 characters of A-Z/)
  refuses('an instance id with a blank', of('pod 0'), /instanceId is "pod 0"/)
  refuses('an instance id that is too long', of('x'.repeat(101)), /instanceId is "xxx/)
  refuses('an instance id that is no text', of(0), /instanceId is 0/)

  test('takes an instance id, or none', () => {
    for (const instanceId of ['pod-0', 'a.B_c-9', 'x'.repeat(100), undefined]) {
      assert.equal(resolveConsumerOptions({ groupName: 'g', topics, instanceId }).instanceId, instanceId)
    }
  })

  refuses('a listener that is no function', resolve({ groupName: 'g', topics, onEvent: 1 }), /onEvent is 1/)
})

suite('client options', () => {
  const create = (options: unknown) => () => createClient(options as ClientOptions)
  refuses('no url', create({}), /url is missing/)
  refuses('what is no URL', create({ url: 'localhost' }), /url is not a URL/)
  refuses(
    'another protocol',
    create({ url: 'ftp://localhost' }),
    /url begins with ftp:; it must begin with http: or https:/,
  )
  refuses('a password in the URL', create({ url: 'http://me:secret@localhost' }), /user name or password/)
  refuses('a query in the URL', create({ url: 'http://localhost/?a=1' }), /query or fragment/)
  refuses('an unknown name', create({ url: 'http://localhost', timeout: 1 }), /unknown option "timeout"/)
  const several = (...url: unknown[]) => create({ url })
  refuses('an empty list of URLs', several(), /url is an array; it must be a non-empty string, or an array of some/)
  refuses('a list with what is no text', several('http://localhost', 7), /url is an array; it must be a non-empty/)
  refuses('a list with a hole', create({ url: new Array(1) }), /url is an array; it must be a non-empty/)
  refuses('a list with what is no URL', several('http://localhost', 'localhost'), /url is not a URL/)
  const url = 'http://localhost'
  refuses('a listener that is no function', create({ url, listeners: { preSend: 1 } }), /listeners: preSend is 1/)
  refuses('a listener of another name', create({ url, listeners: { presend: 1 } }), /unknown option "presend"/)

  refuses(
    'a header that cannot be sent',
    create({ url: 'http://localhost', headers: { authorization: 'a\nb' } }),
    /"authorization" is not a header that can be sent/,
  )

  test('never shows what may be a secret', () => {
    const headers = { authorization: 'secret\n' }
    assert.throws(create({ url: 'http://localhost', headers }), (error: Error) => !error.message.includes('secret'))
    assert.throws(create({ url: 'http://me:secret@localhost' }), (error: Error) => !error.message.includes('secret'))
    for (const name of ['headers', 'onEvent', 'tracing', 'listeners', 'transport', 'clock', 'random']) {
      const message = new RegExp(`^client: ${name} is a string; it must be an? (object|function)$`)
      assert.throws(create({ url: 'http://localhost', [name]: 'Bearer secret' }), { message })
    }
    for (const url of ['secret-is-no-url', ['http://localhost', 'secret-is-no-url']]) {
      assert.throws(create({ url }), (error: Error) => !inspect(error).includes('secret-is-no-url'))
    }
  })
})
