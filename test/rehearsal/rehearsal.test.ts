import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { endpoints } from '../../core/protocol/endpoints.ts'
import { dynoxide } from '../../rehearsal/engine.ts'
import type { Rehearsal } from '../../rehearsal/rehearsal.ts'
import { serveHook, useEverything } from '../lib/use-everything.ts'
import { runDemo } from '../support/run-demo.ts'
import { type Resources, rehearseService, synthesizeOnce } from './real-stack.ts'

/** The stack that `cdk deploy` would deploy, on this machine: bundles, routes, tables, rules, and policies enforced. */
suite('the synthesized stack', { skip: dynoxide().skip ?? false, concurrency: true }, () => {
  let synthesized: ReturnType<typeof synthesizeOnce>
  before(() => {
    synthesized = synthesizeOnce()
  })
  after(() => synthesized.remove())

  test('does all that it is for with what it is granted, and uses every grant', async () => {
    // At PMQ's path, where an operator has allowed it, targets may be on this machine.
    const template = synthesized.change(resources => {
      for (const { Type, Properties } of Object.values(resources)) {
        if (Type !== 'AWS::Lambda::Function') continue
        const { Variables } = Properties.Environment as { Variables: Record<string, string> }
        Object.assign(Variables, { PMQ_CALLBACK_NETWORKS: '127.0.0.0/8' })
      }
    })
    await using service = await rehearseService(template, { maxInstances: 2 })
    await using hook = await serveHook()
    await useEverything(service, service.advance, hook)
    assert.ok(hook.got.length >= 5, `${hook.got.length} requests`)
    assert.deepEqual([...service.called].sort(), Object.keys(endpoints).sort())
    assert.deepEqual(service.report(), { denied: [], unused: [], notRehearsed: [], failed: [] })
  })

  test('loses nothing of real data when a consumer is killed and another joins', async () => {
    await using service = await rehearseService(synthesized.folder, { maxInstances: 4, runsSchedules: true })
    await using _ = hurry(service)
    const { published, handled, lost } = await runDemo('run', ['--url', service.url])
    assert.ok(published > 1_000)
    assert.deepEqual({ handled, lost }, { handled: published, lost: 0 })
    assert.deepEqual(withoutUnused(service), nothing)
  })

  test('repeats nothing and loses nothing in a rolling restart under load', async () => {
    await using service = await rehearseService(synthesized.folder, { maxInstances: 4, runsSchedules: true })
    const { published, handled, lost, duplicates } = await runDemo('roll', ['--url', service.url])
    assert.ok(published > 1_000)
    assert.deepEqual({ handled, lost, duplicates }, { handled: published, lost: 0, duplicates: 0 })
    assert.deepEqual(withoutUnused(service), nothing)
  })

  test('is found out where a grant is missing: the call is refused, and named with its function, action and table', async () => {
    const template = synthesized.change(resources => {
      for (const { Action } of grantsOf(resources, 'PmqPublishRole')) remove(Action, 'dynamodb:PutItem')
    })
    await using service = await rehearseService(template)
    await service.call('createTopic', { name: 't', queues: 1 })
    const { status } = await service.send('publish', { topicName: 't', msgs: [{ body: 'one' }] })
    assert.equal(status, 500)
    const [refusal, ...more] = service.report().denied
    assert.deepEqual(more, [])
    assert.match(refusal?.caller ?? '', /PmqPublishFunction/)
    assert.equal(refusal?.action, 'dynamodb:PutItem')
    assert.match(refusal?.resource ?? '', /table\/.*PmqTablesLog/)
  })

  test('is found out where a grant is not needed: it is named as what nothing has used', async () => {
    const template = synthesized.change(resources => {
      for (const { Action } of grantsOf(resources, 'PmqPublishRole'))
        if (Array.isArray(Action)) Action.push('dynamodb:Scan')
    })
    await using service = await rehearseService(template)
    await service.call('createTopic', { name: 't', queues: 1 })
    await service.call('publish', { topicName: 't', msgs: [{ body: 'one' }] })
    const unused = service.report().unused.filter(({ holder }) => holder.includes('PmqPublishRole'))
    // Nothing has failed, and nobody has to be told, so the grants for that were not used either.
    assert.deepEqual([...new Set(unused.map(({ action }) => action))].sort(), [
      'dynamodb:Scan',
      'dynamodb:UpdateItem',
      'events:PutEvents',
    ])
  })

  test('is run by `pmq start --template`, which says at its end what it has found', async () => {
    const program = fileURLToPath(new URL('../../bin/pmq.ts', import.meta.url))
    const args = [program, 'start', '--port', '0', '--template', synthesized.folder]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(child, 'exit')
    let output = ''
    for await (const chunk of child.stdout.setEncoding('utf8')) {
      output += chunk
      const url = /http:\/\/[\d.]+:\d+/.exec(output)?.[0]
      if (!url || !output.includes('Ctrl-C') || child.killed) continue
      const answer = await fetch(`${url}/api/admin/topics`, { headers: { connection: 'close' } })
      assert.equal(answer.status, 200)
      child.kill('SIGINT')
    }
    assert.match(output, /\d+ routes ask for an IAM signature on AWS; here every request counts as signed/)
    assert.match(output, /Calls that the policies do not allow: none/)
    assert.match(output, /Grants that nothing has used: \d+\n {2}\S+Role\S*: \w+:/)
    assert.deepEqual(await ended, [0, null])
  })

  test('answers 500 to a request that takes longer than its function may, and goes on', async () => {
    const template = synthesized.change(resources => {
      for (const [id, { Properties }] of Object.entries(resources)) {
        if (id.startsWith('PmqConsumeFunction')) Properties.Timeout = 3
      }
    })
    await using service = await rehearseService(template)
    const client = { lan: 'nodejs', sdkVersion: '1', clientIp: '127.0.0.1' }
    await service.call('createGroup', { name: 'g' })
    const { id: consumerId } = await service.call('register', { ...client, name: 'a' })
    await service.call('registerConsumerGroup', { ...client, consumerId, consumerGroupNames: { g: ['t'] } })
    const poll = (version: number) =>
      service.send('getConsumerGroupPolling', { ...client, consumerId, consumerGroupVersion: { g: version } })
    assert.equal((await poll(1_000)).status, 500)
    assert.equal((await poll(0)).status, 200)
  })
})

const nothing = { denied: [], notRehearsed: [], failed: [] }
function withoutUnused(service: Rehearsal) {
  const { unused, ...rest } = service.report()
  return rest
}

/**
 * Lets the stack's time pass more than twice as fast. A consumer is given up after 30 seconds, which are ten or so then;
 * one that lives is heard of every ten, which are 24.
 */
function hurry(service: Rehearsal): AsyncDisposable {
  const everyMs = 500
  const timer = setInterval(() => service.advance(everyMs * 1.4), everyMs)
  return { [Symbol.asyncDispose]: async () => clearInterval(timer) }
}

type Statement = { Action: string | string[] }

/** The statements of a role, to change. */
function grantsOf(resources: Resources, role: string): Statement[] {
  return Object.entries(resources)
    .filter(([id, { Type }]) => Type === 'AWS::IAM::Policy' && id.startsWith(role))
    .flatMap(([, { Properties }]) => (Properties.PolicyDocument as { Statement: Statement[] }).Statement)
}

function remove(actions: string | string[], action: string): void {
  if (Array.isArray(actions) && actions.includes(action)) actions.splice(actions.indexOf(action), 1)
}
