import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { sdkVersion } from '../../sdk/src/identity.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const packageFile = JSON.parse(readFileSync(join(root, 'sdk/package.json'), 'utf8'))

suite('the package', () => {
  let folder: string
  let inputs: string[]

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pmq-sdk-'))
    const { metafile } = await build({
      entryPoints: [join(root, 'sdk/src/index.ts')],
      outfile: join(folder, 'index.mjs'),
      bundle: true,
      platform: 'node',
      target: 'node20',
      format: 'esm',
      metafile: true,
      absWorkingDir: root,
      logLevel: 'silent',
    })
    inputs = Object.keys(metafile.inputs)
  })

  after(() => rmSync(folder, { recursive: true, force: true }))

  test('brings nothing along but its own sources and those of the protocol', () => {
    assert.deepEqual(
      inputs.filter(path => !path.startsWith('sdk/src/') && !path.startsWith('core/protocol/')),
      [],
    )
    assert.deepEqual(packageFile.dependencies ?? {}, {})
  })

  test('tells the version that its package file has', () => {
    assert.equal(sdkVersion, packageFile.version)
  })

  const programs = {
    'after close': `
      const client = createClient({ url: process.env.PMQ_URL })
      await client.publish('orders', { body: 'a' })
      const consumer = client.consumer({ groupName: 'billing', topics: { orders() {} } })
      await consumer.start()
      await client.close()
      console.log('closed')`,
    'without close, when nothing is under way': `
      const client = createClient({ url: process.env.PMQ_URL })
      await client.publish('orders', { body: 'a' })
      console.log('closed')`,
    'after close, with publishes that nobody awaited': `
      const client = createClient({ url: process.env.PMQ_URL })
      let stored = 0
      for (let count = 0; count < 1000; count++) void client.publish('orders', { body: 'a' }).then(() => stored++)
      await client.close()
      console.log(stored === 1000 ? 'closed' : stored)
      process.exit()`,
  }
  for (const [when, program] of Object.entries(programs)) {
    test(`lets the process end ${when}`, async () => {
      const server = createServer(async (incoming, outgoing) => {
        let text = ''
        for await (const chunk of incoming.setEncoding('utf8')) text += chunk
        const count = JSON.parse(text).msgs?.length ?? 1
        const offsets = [{ first: 0, count, queueId: 1, offset: 1 }]
        const answer = {
          suc: true,
          id: 1,
          sleepTime: 0,
          deleted: 0,
          consumerDeleted: 0,
          topicQueues: { orders: [1] },
          offsets,
        }
        outgoing.end(JSON.stringify(answer))
      })
      await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const source = `import { createClient } from ${JSON.stringify(join(folder, 'index.mjs'))}\n${program}`
      const output = await new Promise<string>(resolve => {
        const options = { env: { ...process.env, PMQ_URL: url }, timeout: 15_000 }
        execFile(process.execPath, ['--input-type=module', '-e', source], options, (error, out, err) => {
          resolve(error ? `${error.message}${err}` : out)
        })
      })
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
      assert.equal(output.trim(), 'closed')
    })
  }
})
