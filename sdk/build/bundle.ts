import { join } from 'node:path'
import { build, type Metafile } from 'esbuild'
import { type Entry, entries, packageFile, peers, repositoryFolder, sdkFolder } from './entries.ts'

/** What an entry brings with it when it is imported. */
export type BundledEntry = Entry & {
  /** Of its file and of the parts that it shares with other entries. */
  bytes: number
  /** What it imports from outside of the package: modules of Node, and peers. */
  imports: string[]
}

export type Bundles = {
  entries: BundledEntry[]
  /** Every source that went in, relative to the repository. */
  inputs: string[]
}

/**
 * One ES module for each entry. What several of them use is in files of its own, so that it exists once: an error of one
 * entry is an `instanceof` the class of another. Readable on purpose: whoever steps into it should see our code. Without a
 * folder to write into it is only measured.
 */
export async function bundle(outputFolder?: string): Promise<Bundles> {
  const { metafile } = await build({
    entryPoints: Object.fromEntries(entries.map(({ fileName, source }) => [fileName, source])),
    outdir: outputFolder ?? join(sdkFolder, 'dist'),
    write: outputFolder !== undefined,
    bundle: true,
    splitting: true,
    chunkNames: 'shared/[hash]',
    format: 'esm',
    platform: 'node',
    target: `node${/\d+/.exec(packageFile.engines.node)?.[0]}`,
    external: peers,
    sourcemap: true,
    metafile: true,
    absWorkingDir: repositoryFolder,
    logLevel: 'warning',
  })
  const pathOf = new Map(
    Object.entries(metafile.outputs).map(([path, { entryPoint }]) => [
      entryPoint && join(repositoryFolder, entryPoint),
      path,
    ]),
  )
  return {
    entries: entries.map(entry => ({ ...entry, ...measure(metafile, pathOf.get(entry.source) ?? '') })),
    inputs: Object.keys(metafile.inputs),
  }
}

/** An output with all that it imports. */
function measure({ outputs }: Metafile, entryPath: string): { bytes: number; imports: string[] } {
  const imports = new Set<string>()
  const seen = new Set<string>()
  let bytes = 0
  const visit = (path: string) => {
    const output = outputs[path]
    if (!output || seen.has(path)) return
    seen.add(path)
    bytes += output.bytes
    for (const imported of output.imports) {
      if (imported.external) imports.add(imported.path)
      else visit(imported.path)
    }
  }
  visit(entryPath)
  return { bytes, imports: [...imports].sort() }
}
