import { coreFromEnv } from './edge/core.ts'
import { envNames, lagMetricsModes, requireEnv } from './edge/env.ts'
import { tickHandler } from './edge/tick-handler.ts'

const { env } = process

export const handler = tickHandler(
  coreFromEnv(env),
  requireEnv(env, envNames.serviceName),
  lagMetricsModes.find(mode => mode === env[envNames.lagMetrics]),
)
