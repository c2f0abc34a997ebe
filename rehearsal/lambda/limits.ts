/** Lambda's limits, which no setting raises: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html */
export const lambdaLimits = {
  /** Of a request and of an answer. */
  maxPayloadBytes: 6 * 1024 * 1024,
  /** AWS takes 1 MB since October 2025, and not in all partitions; what passes here passes everywhere. */
  maxAsyncPayloadBytes: 256 * 1024,
  /** Of all names and values of the environment together. */
  maxEnvironmentBytes: 4 * 1024,
  /** How long the code of a function may take to load. */
  initTimeoutMs: 10_000,
} as const
