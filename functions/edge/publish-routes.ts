import { getTopicQueueIds } from '../../core/client/meta.ts'
import { publish } from '../../core/client/publish.ts'
import type { Routes } from './http.ts'

export const publishRoutes = { publish, getTopicQueueIds } satisfies Routes
