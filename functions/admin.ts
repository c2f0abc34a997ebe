import { adminOptions, adminRoutes } from './edge/admin-routes.ts'
import { coreFromEnv } from './edge/core.ts'
import { httpHandler } from './edge/http.ts'

export const handler = httpHandler(coreFromEnv(process.env), adminRoutes, adminOptions)
