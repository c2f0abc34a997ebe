import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { endpoints } from '../../core/protocol/endpoints.ts'
import { envNames } from '../../functions/edge/env.ts'
import { moto, type RunningEngine } from '../support/engines.ts'
import { openAccount } from './account.ts'
import { account, runCdk, synthesizeForMoto, type Template } from './cdk.ts'

/**
 * A real deployment by the command line of CDK: bootstrap, assets, change set, resources, to moto, which answers for AWS.
 * What moto keeps of a template is looked for in its services. It keeps nothing of HTTP APIs, nor of tables' TTL and
 * point-in-time recovery: those are looked for in the template that CloudFormation has.
 */
const engine = moto()

suite('deployed for real, to moto', { skip: engine.skip ?? false }, () => {
  let running: RunningEngine
  let folder: string
  let deployed: ReturnType<typeof openAccount>
  let template: Template
  let cdk: (...args: string[]) => Promise<string>
  const app = (name: string) => join(folder, name)

  before(async () => {
    const starting = engine.start()
    folder = await mkdtemp(join(tmpdir(), 'pmq-deploy-'))
    template = synthesizeForMoto(app('first'))
    running = await starting
    // moto finds a template that was uploaded to it by this name of the machine only.
    const endpoint = running.endpoint.replace('127.0.0.1', 'localhost')
    cdk = (...args) => runCdk(endpoint, folder, ...args)
    deployed = openAccount(endpoint)
    await cdk('bootstrap', `aws://${account.id}/${account.region}`)
    await cdk('deploy', '--app', app('first'), '--require-approval', 'never')
  })
  after(async () => {
    deployed?.close()
    await running?.stop()
    await rm(folder, { recursive: true })
  })

  const idsOf = (type: string) => Object.keys(template.Resources).filter(id => template.Resources[id]?.Type === type)
  /** The name that CloudFormation has given a resource, as others are told it. */
  const nameOf = async (id: string) => (await deployed.tables()).get(id)?.TableName

  test('the stack is there, with the template as it was synthesized', async () => {
    assert.equal(await deployed.statusOf('Pmq'), 'CREATE_COMPLETE')
    const kept = await deployed.templateOf('Pmq')
    for (const { method, path } of Object.values(endpoints)) assert.ok(kept.includes(`"${method} ${path}"`), path)
    assert.ok(kept.includes('TimeToLiveSpecification') && kept.includes('PointInTimeRecoverySpecification'))
  })

  test('its tables are there, with their keys, paid by request and protected from deletion', async () => {
    const tables = await deployed.tables()
    assert.deepEqual([...tables.keys()].sort(), idsOf('AWS::DynamoDB::Table').sort())
    for (const [id, table] of tables) {
      assert.deepEqual(table.KeySchema, template.Resources[id]?.Properties.KeySchema)
      assert.equal(table.BillingModeSummary?.BillingMode, 'PAY_PER_REQUEST')
      assert.equal(table.DeletionProtectionEnabled, true)
    }
  })

  test('its functions are there, with their code, settings, and the names of the tables and of the bus', async () => {
    const functions = await deployed.functions()
    assert.deepEqual([...functions.keys()].sort(), idsOf('AWS::Lambda::Function').sort())
    const [log = '', registry = ''] = idsOf('AWS::DynamoDB::Table')
    const [bus = ''] = idsOf('AWS::Events::EventBus')
    for (const [id, { Runtime, Timeout, MemorySize, CodeSize = 0, Environment }] of functions) {
      const { Properties } = template.Resources[id] ?? {}
      assert.deepEqual([Runtime, Timeout, MemorySize], ['nodejs24.x', Properties?.Timeout, Properties?.MemorySize])
      assert.ok(CodeSize > 10_000, `${id} has ${CodeSize} bytes of code`)
      const variables = Environment?.Variables ?? {}
      assert.equal(variables[envNames.logTable], await nameOf(log))
      assert.equal(variables[envNames.registryTable], await nameOf(registry))
      if (envNames.bus in variables) assert.equal(variables[envNames.bus], template.Resources[bus]?.Properties.Name)
    }
  })

  test('its rules are there, on their buses, with what they listen to and whom they call', async () => {
    const [bus = ''] = idsOf('AWS::Events::EventBus')
    const busName = String(template.Resources[bus]?.Properties.Name)
    const found = [...(await deployed.rules('default')), ...(await deployed.rules(busName))]
    const expected = idsOf('AWS::Events::Rule').map(id => {
      const { ScheduleExpression, EventPattern, Targets } = template.Resources[id]?.Properties ?? {}
      const targets = (Targets as { Arn: { 'Fn::GetAtt'?: string[]; Ref?: string } }[]).map(
        ({ Arn }) => Arn['Fn::GetAtt']?.[0] ?? Arn.Ref,
      )
      return { ScheduleExpression, EventPattern, targets }
    })
    const byText = (rules: object[]) => rules.map(rule => JSON.stringify(rule)).sort()
    const parsed = found.map(({ EventPattern, ...rule }) => ({
      ...rule,
      ...(EventPattern && { EventPattern: JSON.parse(EventPattern) }),
    }))
    const inOneOrder = (rules: Record<string, unknown>[]) =>
      byText(
        rules.map(({ ScheduleExpression, EventPattern, targets }) => ({ ScheduleExpression, EventPattern, targets })),
      )
    assert.deepEqual(inOneOrder(parsed), inOneOrder(expected))
  })

  test('each role may do on the tables and the bus what the template says', async () => {
    for (const { Properties } of Object.values(template.Resources).filter(({ Type }) => Type === 'AWS::IAM::Policy')) {
      const { Roles, PolicyDocument } = Properties as PolicyProperties
      const expected: Record<string, string[]> = {}
      for (const { Action, Resource } of PolicyDocument.Statement) {
        const [id] = Resource['Fn::GetAtt']
        const name = String(template.Resources[id]?.Properties.Name ?? id)
        expected[name] = [...(expected[name] ?? []), ...[Action].flat()].sort()
      }
      const roleId = Roles[0]?.Ref ?? ''
      const role = [...(await deployed.functions()).values()].find(({ Role }) => Role?.includes(`/Pmq-${roleId}-`))
      assert.deepEqual(await deployed.grantsOf(role?.Role?.replace(/^.*\//, '') ?? ''), expected)
    }
  })

  test('API Gateway may call the functions behind it, and EventBridge the others', async () => {
    for (const [id, { FunctionName = '' }] of await deployed.functions()) {
      const expected = Object.values(template.Resources)
        .filter(
          ({ Type, Properties }) =>
            Type === 'AWS::Lambda::Permission' && JSON.stringify(Properties.FunctionName).includes(id),
        )
        .map(({ Properties }) => Properties.Principal)
      assert.deepEqual((await deployed.invokersOf(FunctionName)).sort(), expected.sort())
    }
  })

  test('a second deployment of the same changes nothing', async () => {
    const before = await deployed.functions()
    assert.match(await cdk('deploy', '--app', app('first'), '--require-approval', 'never'), /Pmq \(no changes\)/)
    const modified = (functions: typeof before) => [...functions.values()].map(each => each.LastModified)
    assert.deepEqual(modified(await deployed.functions()), modified(before))
  })

  // By change set moto fails to delete one that is not there, which CDK tries first; and for a parameter that was left to
  // its default it does not know a previous value.
  test('a deployment of something else changes that, and leaves the tables as they are', async () => {
    const before = await deployed.tables()
    synthesizeForMoto(app('changed'), { timeZone: 'Asia/Shanghai' })
    const directly = ['--method', 'direct', '--no-previous-parameters']
    await cdk('deploy', '--app', app('changed'), '--require-approval', 'never', ...directly)
    assert.equal(await deployed.statusOf('Pmq'), 'UPDATE_COMPLETE')
    const zones = [...(await deployed.functions())].map(([id, { Environment }]) => [
      /^Pmq(\w+)Function/.exec(id)?.[1],
      Environment?.Variables?.[envNames.timeZone],
    ])
    assert.deepEqual(zones.filter(([, zone]) => zone !== undefined).sort(), [
      ['Consume', 'Asia/Shanghai'],
      ['Notify', 'Asia/Shanghai'],
    ])
    assert.deepEqual(await deployed.tables(), before)
  })
})

type PolicyProperties = {
  Roles: { Ref: string }[]
  PolicyDocument: { Statement: { Action: string | string[]; Resource: { 'Fn::GetAtt': [string, string] } }[] }
}
