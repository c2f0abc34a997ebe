import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defaultSettings } from '../../core/core.ts'
import { coreFromEnv } from '../../functions/edge/core.ts'
import { envNames } from '../../functions/edge/env.ts'

const tables = { [envNames.logTable]: 'log', [envNames.registryTable]: 'registry' }
const endpoint = { [envNames.dynamodbEndpoint]: 'http://127.0.0.1:1' }

/** The settings that a function takes from its environment. */
async function settingsOf(env: Record<string, string>) {
  const core = coreFromEnv({ ...tables, ...endpoint, ...env })
  await core.store.close()
  return core.settings
}

describe('a function', () => {
  test('has the defaults where its environment says nothing, or nothing of meaning', async () => {
    assert.deepEqual(await settingsOf({}), defaultSettings)
    const empty = { [envNames.timeZone]: '', [envNames.pollHoldMs]: '', [envNames.subEnvironments]: '' }
    assert.deepEqual(await settingsOf(empty), defaultSettings)
    assert.deepEqual(await settingsOf({ [envNames.subEnvironments]: '0' }), defaultSettings)
  })

  test('takes time zone, length of a long poll and sub-environments from its environment', async () => {
    const env = {
      [envNames.timeZone]: 'Asia/Shanghai',
      [envNames.pollHoldMs]: '0',
      [envNames.subEnvironments]: '1',
    }
    assert.deepEqual(await settingsOf(env), {
      ...defaultSettings,
      timeZone: 'Asia/Shanghai',
      pollHoldMs: 0,
      subEnvironments: true,
    })
  })

  test('says which variable is missing', () => {
    assert.throws(() => coreFromEnv({ ...endpoint }), /the environment variable PMQ_LOG_TABLE is not set/)
  })
})
