import { arnOf, roleArnOf } from '../template/account.ts'
import type { FunctionSpec } from './function-spec.ts'

/** A function that is in the account and not in the template, which ours may be told to invoke. */
export type Neighbour = { name: string; folder: string; handler: string; timeoutMs?: number }

/** Its role allows nothing: what it does on AWS is not what is rehearsed. */
export const toSpec = ({ name, folder, handler, timeoutMs = 30_000 }: Neighbour): FunctionSpec => ({
  name,
  arn: arnOf('lambda', `function:${name}`),
  roleArn: roleArnOf(`${name}-role`),
  folder,
  handler,
  timeoutMs,
  memoryMb: 128,
  environment: {},
  reservedConcurrency: undefined,
  logGroup: `/aws/lambda/${name}`,
  asynchronous: { retries: 2, maxAgeMs: 6 * 3_600_000, onFailureArn: undefined, deadLetterArn: undefined },
})
