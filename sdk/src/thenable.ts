/** Whether a value is to be waited for. Throws where even to look at it does, as at a proxy. */
export function isThenable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'then' in value
}

/** What a value that nobody waits for rejects with is ignored; it would end the process. */
export async function ignoreRejection(value: unknown): Promise<void> {
  try {
    await value
  } catch {}
}
