import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { dynoxide } from '../../rehearsal/engine.ts'
import { api, lambda, rehearse } from './small-stack.ts'

const serviceError = (message: string) => ({ message })

suite('a rehearsed function behind the API', { skip: dynoxide().skip ?? false }, () => {
  test('is given its environment, the environment of Lambda, and nothing of this machine', async () => {
    process.env.PMQ_SECRET_OF_THIS_MACHINE = 'x'
    await using stack = await rehearse({
      ...lambda('One', [], { Environment: { Variables: { NAME: { Ref: 'AWS::StackName' } } }, MemorySize: 256 }),
      ...api('One'),
    })
    const { answer } = await stack.act('One', { act: 'environment' })
    const { NAME, AWS_LAMBDA_FUNCTION_NAME, AWS_LAMBDA_FUNCTION_MEMORY_SIZE, AWS_REGION, ...rest } = answer as Record<
      string,
      string
    >
    assert.deepEqual(
      { NAME, AWS_LAMBDA_FUNCTION_NAME, AWS_LAMBDA_FUNCTION_MEMORY_SIZE, AWS_REGION },
      {
        NAME: 'Small',
        AWS_LAMBDA_FUNCTION_NAME: 'Small-One',
        AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '256',
        AWS_REGION: 'us-east-1',
      },
    )
    const others = Object.keys(rest).filter(name => !/^(AWS_|LAMBDA_|_HANDLER$|LANG$|TZ$)/.test(name))
    // The first two are Node's own, of its channel to its parent.
    assert.deepEqual(
      others.filter(name => !name.startsWith('NODE_CHANNEL_')),
      [],
    )
    delete process.env.PMQ_SECRET_OF_THIS_MACHINE
  })

  test('that takes longer than it may is ended, is answered for with 500, and starts anew', async () => {
    await using stack = await rehearse({ ...lambda('One'), ...api('One') })
    assert.deepEqual(await stack.act('One', { act: 'count' }), { status: 200, answer: 1 })
    assert.deepEqual(await stack.act('One', { act: 'hang' }), {
      status: 500,
      answer: serviceError('Internal Server Error'),
    })
    assert.deepEqual(await stack.act('One', { act: 'count' }), { status: 200, answer: 1 })
    assert.equal(stack.coldStarts(), 2)
    assert.match(stack.report().failed[0]?.what ?? '', /^Sandbox.Timedout: Error: Task timed out after 1.00 seconds$/)
  })

  test('that ends its process, or throws, is answered for with 500 and tells nobody why', async () => {
    await using stack = await rehearse({ ...lambda('One'), ...api('One') })
    for (const act of ['exit', 'fail']) {
      assert.deepEqual(await stack.act('One', { act }), { status: 500, answer: serviceError('Internal Server Error') })
    }
    const failed = stack.report().failed.map(({ what }) => what)
    assert.deepEqual(failed, [
      'Runtime.ExitError: Error: Runtime exited with error: exit status 3',
      'TypeError: as it was told',
    ])
  })

  test('may answer 6 MB, and no byte more', async () => {
    await using stack = await rehearse({ ...lambda('One'), ...api('One') })
    // An answer is a JSON text within JSON: its own quotes, and those of the body, escaped.
    const around = JSON.stringify({ statusCode: 200, body: '""' }).length
    const most = 6 * 1024 * 1024 - around
    assert.equal((await stack.act('One', { act: 'answer', bytes: most })).status, 200)
    assert.equal((await stack.act('One', { act: 'answer', bytes: most + 1 })).status, 500)
    assert.match(stack.report().failed[0]?.what ?? '', /^Function.ResponseSizeTooLarge: .*6291457 bytes/)
  })

  test('is given no request that is larger than an event may be, and the gateway none that is larger than its own limit', async () => {
    await using stack = await rehearse({ ...lambda('One'), ...api('One') })
    for (const bytes of [7, 11].map(mb => mb * 1024 * 1024)) {
      const { status, answer } = await stack.act('One', { act: 'event', padding: 'x'.repeat(bytes) })
      assert.deepEqual({ status, answer }, { status: 413, answer: serviceError('Request Entity Too Large') })
    }
    assert.equal(stack.coldStarts(), 0)
  })

  test('answers routes of the template and no other', async () => {
    await using stack = await rehearse({ ...lambda('One'), ...lambda('Two'), ...api('One') })
    assert.deepEqual(await stack.act('Two', { act: 'count' }), { status: 404, answer: serviceError('Not Found') })
    const got = await fetch(`${stack.url}/One`, { headers: { connection: 'close' } })
    assert.deepEqual([got.status, await got.json()], [404, serviceError('Not Found')])
  })

  test('serves one request at a time in each instance, up to as many instances as it has reserved', async () => {
    await using stack = await rehearse(
      { ...lambda('One', [], { ReservedConcurrentExecutions: 2 }), ...lambda('Two'), ...api('One', 'Two') },
      { maxInstances: 3 },
    )
    const answers = await Promise.all(Array.from({ length: 3 }, () => stack.act('One', { act: 'hang' })))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [500, 500, 503])
    // Without a reservation requests wait for one of the instances that this machine has room for.
    const counted = await Promise.all(Array.from({ length: 9 }, () => stack.act('Two', { act: 'count' })))
    assert.equal(counted.filter(({ status }) => status === 200).length, 9)
    assert.equal(counted.filter(({ answer }) => answer === 1).length, 3)
  })

  test('lives in the time that the rehearsal says it is', async () => {
    await using stack = await rehearse({ ...lambda('One'), ...api('One') })
    const dayMs = 86_400_000
    const clock = async () => {
      const { now, leftMs } = (await stack.act('One', { act: 'clock' })).answer as { now: string; leftMs: number }
      return { now: Date.parse(now), leftMs }
    }
    const before = await clock()
    stack.advance(dayMs)
    const after = await clock()
    assert.ok(after.now - before.now >= dayMs && after.now - before.now < 2 * dayMs)
    for (const { leftMs } of [before, after]) assert.ok(leftMs > 0 && leftMs <= 1_000)
  })

  test('is started by nobody whom its policy does not name', async () => {
    const { OnePermission, ...rest } = { ...lambda('One'), ...api('One') }
    assert.ok(OnePermission)
    await using stack = await rehearse(rest)
    assert.deepEqual(await stack.act('One', { act: 'count' }), {
      status: 500,
      answer: serviceError('Internal Server Error'),
    })
    const [refusal] = stack.report().denied
    assert.equal(refusal?.caller, 'API Gateway for POST /One')
    assert.equal(refusal?.action, 'lambda:InvokeFunction')
  })
})
