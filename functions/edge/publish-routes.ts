import { publishAndUpdateResultFailMsg } from '../../core/client/failures.ts'
import { getTopicQueueIds } from '../../core/client/meta.ts'
import { publish } from '../../core/client/publish.ts'
import type { Routes } from './http.ts'

export const publishRoutes = { publish, publishAndUpdateResultFailMsg, getTopicQueueIds } satisfies Routes
