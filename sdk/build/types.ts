import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { CompilerState, Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor'
import { type DeclarationFile, readDeclarations, shareDeclarations } from './declarations.ts'
import { type Entry, entries, peers, repositoryFolder, sdkFolder } from './entries.ts'

/** The types of an entry. */
export type EntryTypes = Entry & {
  declarations: DeclarationFile
  /** What it exports, without comments: what a reviewer of a change of the public surface looks at. */
  report: string
}

/**
 * The types that a program sees. The compiler writes a `.d.ts` beside each source; API Extractor, which brings an older
 * compiler of its own, gathers what an entry shows from them into one file. Fails where an export has no comment, where
 * something can be seen and not named, and where a program would need a package that it does not have.
 */
export async function makeTypes(): Promise<EntryTypes[]> {
  const folder = await mkdtemp(join(tmpdir(), 'pmq-sdk-types-'))
  try {
    const compiler = join(repositoryFolder, 'node_modules/typescript/bin/tsc')
    const compilerArguments = [compiler, '-p', join(sdkFolder, 'tsconfig.build.json'), '--outDir', folder]
    await promisify(execFile)(process.execPath, compilerArguments)
    await symlink(join(repositoryFolder, 'node_modules'), join(folder, 'node_modules'), 'junction')
    return await extract(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function extract(folder: string): Promise<EntryTypes[]> {
  const configs = entries.map(entry => ({ entry, config: configure(folder, entry) }))
  const [main, ...others] = configs.map(({ config }) => config)
  if (!main) throw new Error('sdk/package.json has no exports')
  const additionalEntryPoints = others.map(({ mainEntryPointFilePath }) => mainEntryPointFilePath)
  const compilerState = CompilerState.create(main, { additionalEntryPoints })
  const mistakes: string[] = []
  const rolledUp = new Map<string, DeclarationFile>()
  const reports = new Map<string, string>()
  for (const { entry, config } of configs) {
    Extractor.invoke(config, {
      compilerState,
      localBuild: true,
      messageCallback(message) {
        message.handled = true
        if (message.category === 'console') return
        if (message.logLevel !== ExtractorLogLevel.Error && message.logLevel !== ExtractorLogLevel.Warning) return
        const place = message.sourceFilePath && relative(folder, message.sourceFilePath)
        mistakes.push(`${place}:${message.sourceFileLine} ${message.text} (${message.messageId})`)
      },
    })
    rolledUp.set(entry.fileName, readDeclarations(await readFile(config.untrimmedFilePath, 'utf8')))
    reports.set(entry.fileName, await readFile(config.reportFilePath, 'utf8'))
  }

  const { files, unnamed } = shareDeclarations(rolledUp)
  mistakes.push(...unnamed.map(name => `${name} can be seen and is not exported`))
  for (const [fileName, { header }] of files) {
    const foreign = header.flatMap(line => /from '([^.'][^']*)'/.exec(line)?.[1] ?? [])
    const unknown = foreign.filter(name => !name.startsWith('node:') && !peers.includes(name))
    mistakes.push(...unknown.map(name => `${fileName}: its types need the package ${name}`))
  }
  if (mistakes.length > 0) throw new Error(`the types of the SDK:\n${[...new Set(mistakes)].sort().join('\n')}`)
  return entries.map(entry => ({
    ...entry,
    declarations: files.get(entry.fileName) ?? { introduction: '', header: [], declarations: [] },
    report: reports.get(entry.fileName) ?? '',
  }))
}

function configure(folder: string, { fileName, source }: Entry): ExtractorConfig {
  const entryPoint = join(folder, relative(repositoryFolder, source)).replace(/\.ts$/, '.d.ts')
  const output = join(folder, 'extracted')
  const compilerOptions = {
    target: 'ES2024',
    lib: ['ES2024', 'ESNext.Disposable'],
    module: 'NodeNext',
    types: ['node'],
    strict: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    noEmit: true,
  }
  return ExtractorConfig.prepare({
    configObject: {
      projectFolder: folder,
      mainEntryPointFilePath: entryPoint,
      compiler: { overrideTsconfig: { compilerOptions, files: [entryPoint] } },
      apiReport: {
        enabled: true,
        reportFileName: `${fileName}.api.md`,
        reportFolder: output,
        reportTempFolder: output,
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: true, untrimmedFilePath: join(output, `${fileName}.d.ts`) },
      tsdocMetadata: { enabled: false },
      newlineKind: 'lf',
      messages: {
        extractorMessageReporting: {
          'ae-undocumented': { logLevel: ExtractorLogLevel.Error },
          // There is one kind of export: public.
          'ae-missing-release-tag': { logLevel: ExtractorLogLevel.None },
          // Looked for when it is known what the entries share.
          'ae-forgotten-export': { logLevel: ExtractorLogLevel.None },
        },
      },
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: join(sdkFolder, 'package.json'),
  })
}
