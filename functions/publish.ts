import { coreFromEnv } from './edge/core.ts'
import { httpHandler } from './edge/http.ts'
import { publishRoutes } from './edge/publish-routes.ts'

export const handler = httpHandler(coreFromEnv(process.env), publishRoutes)
