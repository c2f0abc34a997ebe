/** A program in a Markdown file. */
export type Snippet = {
  file: string
  line: number
  /** What it is a copy of, as the opening fence says: a file, or a region of one (`examples/keys.ts#keys`). */
  source: string | undefined
  text: string
}

/** The TypeScript of a Markdown file. */
export function readSnippets(file: string, markdown: string): Snippet[] {
  return Array.from(markdown.matchAll(/^```ts(?: (\S+))?\n([\s\S]*?)^```$/gm), match => {
    const [, source, text = ''] = match
    return { file, line: markdown.slice(0, match.index).split('\n').length, source, text }
  })
}

/** A file between `// #region name` and the next `// #endregion`, without its indentation; or all of it. */
export function readRegion(text: string, name: string | undefined): string {
  if (name === undefined) return text
  const [, indentation = '', region] =
    new RegExp(`^( *)// #region ${name}\\n([\\s\\S]*?)^ *// #endregion$`, 'm').exec(text) ?? []
  if (region === undefined) throw new Error(`there is no region ${name}`)
  return region.replaceAll(new RegExp(`^${indentation}`, 'gm'), '')
}
