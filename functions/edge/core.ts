import { randomBytes } from 'node:crypto'
import { type Core, type CoreDeps, createCore, defaultSettings } from '../../core/core.ts'
import { publicTargets, type TargetPolicy } from '../../core/notify/network-policy.ts'
import { systemClock } from '../../core/protocol/clock.ts'
import { createClient } from '../../store/dynamo/client.ts'
import { openDynamoStore } from '../../store/dynamo/open.ts'
import { type Environment, envNames, listOf, requireEnv } from './env.ts'
import { createLazyBus, silentBus } from './lazy-bus.ts'

/** 72 random bits: as unique as a batch needs to be told from those around it, in twelve characters. */
export const newId = () => randomBytes(9).toString('base64url')

/** 32 bytes, as long as the signature's own. */
export const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`

/** What a function works with, once per container. A function that never changes a group has no bus. */
export function coreFromEnv(env: Environment, reports: Pick<CoreDeps, 'onDeadLetters'> = {}): Core {
  const endpoint = env[envNames.dynamodbEndpoint]
  const busName = env[envNames.bus]
  return createCore({
    store: openDynamoStore({
      client: createClient({ ...(endpoint && { endpoint }) }),
      logTable: requireEnv(env, envNames.logTable),
      registryTable: requireEnv(env, envNames.registryTable),
    }),
    clock: systemClock,
    random: Math.random,
    newId,
    newSecret,
    bus: busName ? createLazyBus(busName) : silentBus,
    settings: {
      ...defaultSettings,
      timeZone: env[envNames.timeZone] || defaultSettings.timeZone,
      pollHoldMs: Number(env[envNames.pollHoldMs] || defaultSettings.pollHoldMs),
      subEnvironments: env[envNames.subEnvironments] === '1',
      targets: targetsFrom(env),
    },
    ...reports,
  })
}

function targetsFrom(env: Environment): TargetPolicy {
  const ports = listOf(env[envNames.webhookPorts]).map(Number)
  const callbackNetworks = listOf(env[envNames.callbackNetworks])
  return {
    network: { ...publicTargets, callbackNetworks, ...(ports.length > 0 && { ports }) },
    functions: listOf(env[envNames.lambdaConsumers]),
  }
}
