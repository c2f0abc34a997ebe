import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** What can be imported from the package: `pmq-sdk`, `pmq-sdk/notify`, … */
export type Entry = {
  /** As in `exports`: `.`, `./notify`. */
  subpath: string
  /** Of its files in the package, without an ending: `index`, `notify`. */
  fileName: string
  /** What a program imports: `pmq-sdk`, `pmq-sdk/notify`. */
  specifier: string
  /** Its source, absolute. */
  source: string
}

/** `sdk/package.json`, from which everything here is read. */
export type PackageFile = {
  name: string
  version: string
  exports: Record<string, string>
  engines: { node: string }
  devDependencies: Record<string, string>
  peerDependencies?: Record<string, string>
  [field: string]: unknown
}

/** The folder of the workspace, and that of the repository. */
export const sdkFolder = fileURLToPath(new URL('..', import.meta.url))
export const repositoryFolder = fileURLToPath(new URL('../..', import.meta.url))

export const packageFile: PackageFile = JSON.parse(readFileSync(`${sdkFolder}package.json`, 'utf8'))

/**
 * The `exports` of `sdk/package.json` are the only list of entries: inside the repository they lead to the sources, and
 * the build makes a file of each. The main entry comes first.
 */
export const entries: Entry[] = Object.entries(packageFile.exports).map(([subpath, source]) => ({
  subpath,
  fileName: subpath === '.' ? 'index' : subpath.slice('./'.length),
  specifier: subpath.replace('.', packageFile.name),
  source: fileURLToPath(new URL(source, new URL('../', import.meta.url))),
}))

/** What a program may have beside the package and the package then uses; never bundled. */
export const peers = Object.keys(packageFile.peerDependencies ?? {})
