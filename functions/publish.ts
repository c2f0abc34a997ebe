import { coreFromEnv } from './edge/core.ts'
import { reportDeadLetters } from './edge/dead-letters.ts'
import { envNames, requireEnv } from './edge/env.ts'
import { httpHandler } from './edge/http.ts'
import { publishRoutes } from './edge/publish-routes.ts'

const serviceName = requireEnv(process.env, envNames.serviceName)
const core = coreFromEnv(process.env, {
  onDeadLetters: deadLetters => reportDeadLetters(deadLetters, serviceName, core.clock.now()),
})

export const handler = httpHandler(core, publishRoutes)
