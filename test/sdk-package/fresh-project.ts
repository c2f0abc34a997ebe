import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Built, buildPackage } from '../../sdk/build/build.ts'
import { repositoryFolder } from '../../sdk/build/entries.ts'

const run = promisify(execFile)
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'

/** Runs a tool of our repository; rejects with what it says if it is not content. */
async function runTool(file: string, args: string[], cwd: string): Promise<void> {
  const path = join(repositoryFolder, 'node_modules', file)
  await run(process.execPath, [path, ...args], { cwd }).catch((error: { stdout: string; stderr: string }) => {
    throw new Error(`${file}\n${error.stdout}${error.stderr}`)
  })
}

export type FreshProject = Awaited<ReturnType<typeof openFreshProject>>

/** A project far from ours that has installed the package from its tarball, and nothing else. */
export async function openFreshProject() {
  const folder = await mkdtemp(join(tmpdir(), 'pmq-fresh-'))
  const built: Built = await buildPackage(join(folder, 'built'))
  const { stdout } = await run(npm, ['pack', './built', '--json'], { cwd: folder })
  const [{ filename, size }] = JSON.parse(stdout) as [{ filename: string; size: number }]
  const tarball = join(folder, filename)
  const project = join(folder, 'project')
  await mkdir(project)
  await writeFile(join(project, 'package.json'), JSON.stringify({ name: 'fresh', type: 'module', private: true }))
  await run(npm, ['install', '--offline', '--no-audit', '--no-fund', tarball], { cwd: project })

  return {
    built,
    tarball,
    /** Of the tarball, in bytes. */
    size,
    path: (name: string) => join(project, name),
    write: (name: string, text: string) => writeFile(join(project, name), text),
    read: (name: string) => readFile(join(project, name), 'utf8'),

    /** Gives it a package that our repository has. */
    async link(name: string) {
      const target = join(project, 'node_modules', name)
      await mkdir(join(target, '..'), { recursive: true })
      if (!existsSync(target)) await symlink(join(repositoryFolder, 'node_modules', name), target, 'junction')
    },

    /** What a program prints; rejects with what it complains of if it fails, or does not end. */
    async run(node: string, args: string[], env: Record<string, string> = {}): Promise<string> {
      const options = { cwd: project, env: { ...process.env, ...env }, timeout: 30_000 }
      return (await run(node, args, options)).stdout.trim()
    },

    runTool: (file: string, args: string[]) => runTool(file, args, project),

    /** Type-checks files; rejects with what the compiler says. */
    async check(files: string[], compilerOptions: object): Promise<void> {
      const strict = {
        strict: true,
        skipLibCheck: false,
        noEmit: true,
        exactOptionalPropertyTypes: true,
        verbatimModuleSyntax: true,
      }
      const config = { compilerOptions: { ...strict, ...compilerOptions }, files }
      await writeFile(join(project, 'tsconfig.json'), JSON.stringify(config))
      await runTool('typescript/bin/tsc', ['-p', project], project)
    },

    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  }
}
