import { coreFromEnv } from './edge/core.ts'
import { envNames, requireEnv } from './edge/env.ts'
import { createSqsJobs } from './edge/notify/jobs.ts'
import { notifyHandler } from './edge/notify/notify-handler.ts'
import { openNotifier } from './edge/notify/open-notifier.ts'
import { createInvoke, createLambdaClient } from './edge/push/invoke.ts'

const core = coreFromEnv(process.env)
const lambda = createLambdaClient()

export const handler = notifyHandler(
  openNotifier(core, {
    network: core.settings.targets.network,
    jobs: createSqsJobs(requireEnv(process.env, envNames.jobQueue)),
    invokes: { sync: createInvoke(lambda), async: createInvoke(lambda, 'Event') },
  }),
)
