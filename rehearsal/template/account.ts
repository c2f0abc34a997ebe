/** Where the rehearsed stack is deployed to: an account that nobody has. */
export const account = { id: '000000000000', region: 'us-east-1', partition: 'aws' } as const

/** The ARN of something in it. */
export const arnOf = (service: string, resource: string) =>
  `arn:${account.partition}:${service}:${account.region}:${account.id}:${resource}`

/** Roles belong to no region. */
export const roleArnOf = (name: string) => `arn:${account.partition}:iam::${account.id}:role/${name}`
