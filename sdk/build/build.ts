import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type BundledEntry, bundle } from './bundle.ts'
import { writeDeclarations } from './declarations.ts'
import { entries, packageFile, repositoryFolder, sdkFolder } from './entries.ts'
import { type BundledPackage, findPackages, writeNotices } from './notices.ts'
import { makeTypes } from './types.ts'

export type Built = {
  entries: BundledEntry[]
  /** Sources of ours that went in, relative to the repository. */
  sources: string[]
  /** Packages that went in. */
  packages: BundledPackage[]
}

/** Makes the package that is published: a folder that `npm pack` and `npm publish` take as it is. */
export async function buildPackage(folder: string): Promise<Built> {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  const [bundles, types] = await Promise.all([bundle(folder), makeTypes()])
  const packages = findPackages(bundles.inputs)
  await Promise.all([
    ...types.map(({ fileName, declarations }) =>
      writeFile(join(folder, `${fileName}.d.ts`), writeDeclarations(declarations)),
    ),
    writeFile(join(folder, 'package.json'), `${JSON.stringify(describePackage(), null, 2)}\n`),
    writeFile(join(folder, 'NOTICES.md'), writeNotices(packages)),
    copyFile(join(sdkFolder, 'README.md'), join(folder, 'README.md')),
    copyFile(join(repositoryFolder, 'LICENSE'), join(folder, 'LICENSE')),
  ])
  const sources = bundles.inputs.filter(input => !input.includes('node_modules/'))
  return { entries: bundles.entries, sources, packages }
}

/** `package.json` as it is published: that of the workspace, with its entries leading to what was built. */
function describePackage() {
  const { private: _, scripts, exports, devDependencies, ...published } = packageFile
  return {
    ...published,
    main: './index.js',
    types: './index.d.ts',
    exports: {
      ...Object.fromEntries(
        entries.map(({ subpath, fileName }) => [subpath, { types: `./${fileName}.d.ts`, default: `./${fileName}.js` }]),
      ),
      './package.json': './package.json',
    },
    files: ['*.js', '*.js.map', '*.d.ts', 'shared', 'NOTICES.md'],
  }
}

if (import.meta.main) {
  const built = await buildPackage(join(sdkFolder, 'dist'))
  for (const { specifier, bytes, imports } of built.entries)
    console.log(`${specifier}: ${Math.round(bytes / 1024)} KB; imports ${imports.join(', ') || 'nothing'}`)
  for (const { name, version, license } of built.packages) console.log(`with ${name} ${version} (${license})`)
}
