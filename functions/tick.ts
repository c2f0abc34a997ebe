import { coreFromEnv } from './edge/core.ts'
import { envNames, requireEnv } from './edge/env.ts'
import { tickHandler } from './edge/tick-handler.ts'

export const handler = tickHandler(coreFromEnv(process.env), requireEnv(process.env, envNames.serviceName))
