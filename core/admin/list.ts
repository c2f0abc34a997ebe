const namesPerRead = 1000

/** All names, page by page. */
export async function listAll(
  readPage: (page: { after?: string; limit: number }) => Promise<string[]>,
): Promise<string[]> {
  const names: string[] = []
  for (;;) {
    const after = names.at(-1)
    const page = await readPage({ limit: namesPerRead, ...(after !== undefined && { after }) })
    names.push(...page)
    if (page.length < namesPerRead) return names
  }
}
