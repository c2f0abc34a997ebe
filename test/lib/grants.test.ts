import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { systemClock } from '../../core/protocol/clock.ts'
import { endpoints } from '../../core/protocol/endpoints.ts'
import { dynoxide, type RunningEngine } from '../support/engines.ts'
import { type Containers, startContainers } from './containers.ts'
import { statementsOf } from './statements.ts'
import { synthesize } from './synthesize.ts'
import { serveHook, useEverything } from './use-everything.ts'

const template = synthesize()
const functionIds = Object.keys(template.findResources('AWS::Lambda::Function'))

/** What the template allows a function, in the same terms as what it uses. */
function grantedTo(name: string): Record<string, string[]> {
  const functionId = functionIds.find(id => id.toLowerCase().startsWith(`pmq${name}function`)) ?? ''
  const { logGroup, statements } = statementsOf(template, functionId)
  const resources = Object.entries(statements).filter(([id]) => id !== logGroup)
  return Object.fromEntries(
    resources.map(([id, actions]) => [/Log|Registry|Bus|Jobs/.exec(id)?.[0].toLowerCase() ?? id, actions]),
  )
}

const engine = dynoxide()

suite('the grants', { skip: engine.skip ?? false }, () => {
  let running: RunningEngine
  let containers: Containers
  let hook: Awaited<ReturnType<typeof serveHook>>
  let movedMs = 0

  before(async () => {
    running = await engine.start()
    containers = await startContainers(running.endpoint, { ...systemClock, now: () => systemClock.now() + movedMs })
    hook = await serveHook()
    const advance = (ms: number) => {
      movedMs += ms
    }
    await useEverything(containers, advance, hook)
  })
  after(async () => {
    hook?.close()
    await containers?.close()
    await running.stop()
  })

  test('were tried with every endpoint', () => {
    assert.deepEqual([...containers.called].sort(), Object.keys(endpoints).sort())
  })

  for (const name of ['publish', 'consume', 'admin', 'tick', 'notify'] as const) {
    test(`of ${name} are all that it uses, and it uses all of them`, () => {
      const granted = Object.entries(grantedTo(name)).map(([resource, all]) => {
        const actions = all.map(each => {
          const [action = '', partition] = each.split(' of ')
          if (partition) assert.deepEqual(containers.partitionsOf(name, resource, action), [partition.slice(0, -1)])
          return action
        })
        return [resource, actions]
      })
      assert.deepEqual(containers.usedBy(name), Object.fromEntries(granted))
    })
  }
})
