import { consumeOptions, consumeRoutes } from './edge/consume-routes.ts'
import { coreFromEnv } from './edge/core.ts'
import { httpHandler } from './edge/http.ts'

export const handler = httpHandler(coreFromEnv(process.env), consumeRoutes, consumeOptions)
