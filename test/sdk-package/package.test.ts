import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, type TestContext, test } from 'node:test'
import { build, transform } from 'esbuild'
import { setUp } from '../../demo/admin.ts'
import { endProcess, type HostProcess, startHostProcess } from '../../demo/processes.ts'
import { entries, packageFile, peers } from '../../sdk/build/entries.ts'
import { sdkVersion } from '../../sdk/src/identity.ts'
import { findNode } from './find-node.ts'
import { type FreshProject, openFreshProject } from './fresh-project.ts'

const source = readFileSync(new URL('./program.ts', import.meta.url), 'utf8')

const resolutions = {
  nodenext: { module: 'NodeNext', moduleResolution: 'NodeNext' },
  node16: { module: 'Node16', moduleResolution: 'Node16' },
  bundler: { module: 'ESNext', moduleResolution: 'Bundler' },
}

/** What `program.ts` prints. */
const expected = ['one two three', 'in one queue: true', 'told of the queues: true', 'refused: not_stored']

/** Programs that would hang or lose something if the client did not end, or let go, as it should. */
const endings = {
  'after close': `
    const [, , topicName, groupName] = process.argv
    const client = createClient({ url: process.env.PMQ_URL })
    await client.publish(topicName, { body: 'a' })
    await client.consumer({ groupName, topics: { [topicName]() {} } }).start()
    await client.close()
    console.log('ended')`,
  'without close, when nothing is under way': `
    const client = createClient({ url: process.env.PMQ_URL })
    await client.publish(process.argv[2], { body: 'a' })
    console.log('ended')`,
  'after close, with publishes that nobody awaited': `
    const client = createClient({ url: process.env.PMQ_URL })
    let stored = 0
    for (let count = 0; count < 1000; count++) void client.publish(process.argv[2], { body: 'a' }).then(() => stored++)
    await client.close()
    console.log(stored === 1000 ? 'ended' : stored)
    process.exit()`,
}

suite('the package', () => {
  let project: FreshProject
  let host: HostProcess
  let hostFolder: string

  before(async () => {
    hostFolder = await mkdtemp(join(tmpdir(), 'pmq-host-'))
    host = await startHostProcess(hostFolder, 30)
    project = await openFreshProject()
    const { code } = await transform(source, { loader: 'ts', target: 'node20' })
    await project.write('program.js', code)
  })

  after(async () => {
    await project[Symbol.asyncDispose]()
    await endProcess(host.child, 'SIGTERM')
    await rm(hostFolder, { recursive: true })
  })

  test('needs no other package, and has only what may be passed on', async t => {
    const installed = JSON.parse(await project.read('node_modules/pmq-sdk/package.json'))
    assert.deepEqual(Object.keys(installed.dependencies ?? {}), [])
    assert.ok(peers.every(name => installed.peerDependenciesMeta[name].optional))
    assert.deepEqual(
      (await readdir(project.path('node_modules'))).filter(name => !name.startsWith('.')),
      ['pmq-sdk'],
    )
    for (const { specifier, bytes, imports } of project.built.entries) {
      assert.deepEqual(
        imports.filter(name => !name.startsWith('node:') && !peers.includes(name)),
        [],
      )
      t.diagnostic(`${specifier}: ${kilobytes(bytes)} of code`)
    }
    const licences = new Set(['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', '0BSD', 'Unlicense'])
    for (const { name, license } of project.built.packages) assert.ok(licences.has(license), name)
    t.diagnostic(`the tarball: ${kilobytes(project.size)}`)
  })

  test('is made of its own sources and those of the protocol', () => {
    const foreign = project.built.sources.filter(path => !/^(sdk\/src|core\/protocol)\//.test(path))
    assert.deepEqual(foreign, [])
  })

  test('tells the version that its package file has', () => {
    assert.equal(sdkVersion, packageFile.version)
  })

  test('has a README without a link that leads nowhere on a registry page', async () => {
    const readme = await project.read('node_modules/pmq-sdk/README.md')
    const relative = Array.from(readme.matchAll(/\]\((?!https:|#)([^)]*)\)/g), ([, target]) => target)
    assert.deepEqual(relative, [])
  })

  test('has nothing that publint minds', async () => {
    await project.runTool('publint/src/cli.js', [project.tarball, '--strict'])
  })

  test('has types that are right wherever ES modules are imported', async () => {
    // What `require` finds is an ES module too, which Node loads from 20.19 on; the profile leaves it out.
    await project.runTool('@arethetypeswrong/cli/dist/index.js', [project.tarball, '--profile', 'esm-only'])
  })

  for (const [name, resolution] of Object.entries(resolutions)) {
    test(`has types that a strict program without any others compiles with: ${name}`, async () => {
      await project.write('bare.ts', "import { createClient } from 'pmq-sdk'\nvoid createClient({ url: '' }).close()\n")
      const bare = { target: 'ES2022', lib: ['ES2022', 'DOM'], types: [] }
      await project.check(['bare.ts'], { ...resolution, ...bare })
    })

    test(`has types, in all its entries, that a strict program for Node compiles with: ${name}`, async () => {
      for (const installed of ['@types/node', 'undici-types', ...peers]) await project.link(installed)
      await project.write('program.ts', source)
      const imports = entries.map(({ specifier }, index) => `export * as entry${index} from '${specifier}'`)
      await project.write('all.ts', imports.join('\n'))
      const forNode = { target: 'ES2022', types: ['node'] }
      await project.check(['program.ts', 'all.ts'], { ...resolution, ...forNode })
    })
  }

  for (const major of [20, 24]) {
    test(`works in Node ${major}`, async t => {
      const node = await nodeOrSkip(t, major)
      if (node === undefined) return
      assert.deepEqual(await runProgram(node, 'program.js', `orders-${major}`), expected)
      for (const name of peers) await project.link(name)
      for (const { specifier } of entries) {
        const load = `const start = performance.now(); await import('${specifier}'); console.log(performance.now() - start)`
        const ms = Number(await project.run(node, ['--input-type=module', '-e', load]))
        t.diagnostic(`${specifier} is imported in ${ms.toFixed(1)} ms`)
      }
    })

    test(`is loaded by require() in Node ${major}`, async t => {
      const node = await nodeOrSkip(t, major)
      if (node === undefined) return
      for (const name of peers) await project.link(name)
      for (const { specifier } of entries) {
        const load = `console.log(Object.keys(require('${specifier}')).length > 0)`
        assert.equal(await project.run(node, ['--input-type=commonjs', '-e', load]), 'true')
      }
    })
  }

  for (const [index, [when, body]] of Object.entries(endings).entries()) {
    test(`lets the process end ${when}`, async () => {
      await project.write('ending.js', `import { createClient } from 'pmq-sdk'\n${body}`)
      assert.deepEqual(await runProgram(process.execPath, 'ending.js', `endings-${index}`), ['ended'])
    })
  }

  test('works when a function of Lambda is bundled with it as CommonJS', async () => {
    const handler = `
      import { createClient } from 'pmq-sdk'
      const client = createClient({ url: process.env.PMQ_URL })
      export const handler = event => client.publish(event.topicName, { body: event.body })`
    await project.write('handler.js', handler)
    const options = { bundle: true, platform: 'node', target: 'node20', format: 'cjs', minify: true } as const
    await build({ entryPoints: [project.path('handler.js')], outfile: project.path('lambda/index.cjs'), ...options })
    await setUp(host.url, 'from-lambda', 1, 'from-lambda')
    const invoke = `require('./lambda/index.cjs').handler({ topicName: 'from-lambda', body: 'a' }).then(({ offset }) => console.log(offset))`
    const output = await project.run(process.execPath, ['-e', invoke], { PMQ_URL: host.url })
    assert.equal(output, '1')
  })

  /** Runs a program of the project against the host, with a topic and a group of its own. */
  async function runProgram(node: string, file: string, name: string): Promise<string[]> {
    await setUp(host.url, name, 2, name)
    return (await project.run(node, [file, name, name], { PMQ_URL: host.url })).split('\n')
  }
})

async function nodeOrSkip(t: TestContext, major: number): Promise<string | undefined> {
  const node = await findNode(major)
  if (node === undefined) t.skip(`there is no Node ${major} on the PATH`)
  return node
}

function kilobytes(bytes: number): string {
  return `${Math.round(bytes / 1024)} KB`
}
