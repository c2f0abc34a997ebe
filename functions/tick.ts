import { coreFromEnv } from './edge/core.ts'
import { tickHandler } from './edge/tick-handler.ts'

export const handler = tickHandler(coreFromEnv(process.env))
