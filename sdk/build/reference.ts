import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bundle } from './bundle.ts'
import { repositoryFolder } from './entries.ts'
import { renderPage } from './page.ts'
import { type EntryTypes, makeTypes } from './types.ts'

/** Where the reference is kept. A test fails when it is not what `renderReference` would write. */
export const referenceFolder = join(repositoryFolder, 'docs/sdk-api')

/** The files of the reference by their names: for each entry a page, and its surface without a word. */
export async function renderReference(): Promise<Map<string, string>> {
  const [bundles, types] = await Promise.all([bundle(), makeTypes()])
  const importsOf = new Map(bundles.entries.map(({ fileName, imports }) => [fileName, imports]))
  const files = types.flatMap((entry): [string, string][] => [
    [pageOf(entry), renderPage(entry, importsOf.get(entry.fileName) ?? [])],
    [pageOf(entry).replace('.md', '.api.md'), entry.report],
  ])
  return new Map([['README.md', renderContents(types)], ...files])
}

function renderContents(types: readonly EntryTypes[]): string {
  const rows = types.map(entry => {
    const names = entry.declarations.declarations.map(
      ({ name }) => `[\`${name}\`](${pageOf(entry)}#${name.toLowerCase()})`,
    )
    return `| [\`${entry.specifier}\`](${pageOf(entry)}) | ${[...new Set(names)].join(', ')} |`
  })
  return `# Reference of the SDK

Written by \`npm run reference -w sdk\` from the types that are published and the comments in \`sdk/src\`; change those. The
\`.api.md\` files are the same without comments: what a change of the public surface changes.

| import from | what there is |
|---|---|
${rows.join('\n')}
`
}

const pageOf = ({ specifier }: { specifier: string }) => `${specifier.replaceAll('/', '-')}.md`

if (import.meta.main) {
  const files = await renderReference()
  await rm(referenceFolder, { recursive: true, force: true })
  await mkdir(referenceFolder, { recursive: true })
  await Promise.all([...files].map(([name, text]) => writeFile(join(referenceFolder, name), text)))
}
