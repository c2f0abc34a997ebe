import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { addressKind } from '../../core/notify/addresses.ts'
import { localTargets, publicTargets } from '../../core/notify/network-policy.ts'
import { refuseTargetUrl } from '../../core/notify/target-url.ts'
import { createWebhookSender } from '../../functions/edge/webhook/sender.ts'
import { tricks } from './tricks.ts'

const accepted = [
  'https://example.com',
  'https://example.com/hook?key=a#'.slice(0, -1),
  'HTTPS://EXAMPLE.COM/Hook',
  'https://example.com:443/',
  'https://example.com:8443/',
  'https://bücher.example/',
  'https://xn--bcher-kva.example/',
  'https://例え.テスト/',
  'https://8.8.8.8/',
  'https://134744072/',
  'https://172.15.255.255/',
  'https://172.32.0.1/',
  'https://100.128.0.1/',
  'https://[2606:4700::1111]/',
  'https://localhost.example.com/',
  'https://127.0.0.1.example.com/',
  'https://example.com/a@b',
  'https://example.com/?next=http://127.0.0.1/',
  `https://example.com/${'a'.repeat(2_028)}`,
]

suite('a URL of a target', () => {
  for (const url of accepted)
    test(`is accepted: ${url.slice(0, 80)}`, () => assert.equal(refuseTargetUrl(url, publicTargets), undefined))

  for (const [url, why] of tricks) {
    test(`is refused when it is made a target, and when something is to be sent: ${JSON.stringify(url).slice(0, 80)}`, async () => {
      assert.match(refuseTargetUrl(url, publicTargets) ?? 'accepted', why)
      const sender = createWebhookSender(publicTargets, { resolve: async () => assert.fail('a name was looked up') })
      const answer = await sender.send({
        url,
        secrets: [],
        deliveryId: 'd1',
        body: '{}',
        timeoutMs: 10_000,
        maxAnswerBytes: 10,
      })
      sender.close()
      assert.equal(answer.outcome, 'not_sent')
      assert.match('error' in answer ? answer.error : '', why)
    })
  }

  test('is refused without a word of its path, which may be a secret', () => {
    for (const url of ['http://example.com/T0/s3cret', 'https://example.com:22/s3cret?a=s3cret', 'https://a/s3cret'])
      assert.doesNotMatch(refuseTargetUrl(url, publicTargets) ?? assert.fail('accepted'), /s3cret/)
  })

  test('may be on this machine and in its networks where its operator says so, and never where machines get credentials', () => {
    for (const url of [
      'http://localhost:3000/',
      'http://127.0.0.1/',
      'https://[::1]:1/',
      'http://10.0.0.1/',
      'http://db/',
    ])
      assert.equal(refuseTargetUrl(url, localTargets), undefined)
    for (const host of ['169.254.169.254', '0.0.0.0', '[fd00:ec2::254]', '[::ffff:127.0.0.1]', '[64:ff9b::7f00:1]'])
      assert.match(refuseTargetUrl(`http://${host}/`, localTargets) ?? 'accepted', /no target/)
  })
})

suite('the address of one of PMQ’s clients', () => {
  const policy = {
    ...publicTargets,
    callbackNetworks: ['10.1.0.0/16', 'fd12::/16', '169.254.0.0/16', '8.8.8.0/24', 'nonsense'],
  }

  test('is accepted over plain HTTP and at any port, in a network that the operator has named', () => {
    for (const host of ['10.1.2.3:8080', '10.1.0.1', '[fd12::1]:80', '8.8.8.8:8080'])
      assert.equal(refuseTargetUrl(`http://${host}/mq/client/notify`, policy), undefined)
  })

  const others = [
    'http://10.2.0.1:8080/mq/client/notify',
    'http://127.0.0.1:8080/mq/client/notify',
    'http://169.254.169.254/mq/client/notify',
    'http://[::ffff:10.1.2.3]:8080/mq/client/notify',
    'http://10.1.2.3:8080/',
    'http://10.1.2.3:8080/mq/client/notify/../../../admin',
    'http://10.1.2.3:8080/mq/client/rs',
    'http://10.1.2.3:8080/mq/client/notify?a=b',
    'https://10.1.2.3:8443/mq/client/notify',
    'http://client.example.com:8080/mq/client/notify',
    'http://a@10.1.2.3:8080/mq/client/notify',
  ]
  for (const url of others)
    test(`is refused in every other form: ${url}`, () => assert.ok(refuseTargetUrl(url, policy) !== undefined))
})

test('of IPv6 nothing is public but what is given out as global unicast, less its special parts', () => {
  const kinds: Record<string, string[]> = {
    public: ['2a00::1', '2606:4700::1111', '2001:200::1', '2001:4860::8888', '2003::1', '3ffe::1'],
    local: ['::1', 'fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    never: [
      '::',
      '::2',
      '1fff::1',
      '4000::1',
      '2001:1ff::1',
      'fe80::1%lo',
      'fec0::1',
      '::ffff:1.1.1.1',
      'localhost',
      '',
    ],
  }
  for (const [kind, addresses] of Object.entries(kinds))
    for (const address of addresses) assert.equal(addressKind(address), kind, address)
})
