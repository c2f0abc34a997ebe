import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { repositoryFolder } from './entries.ts'

/** A package whose code is part of ours. */
export type BundledPackage = { name: string; version: string; license: string; text: string }

/** The packages that sources come from, by the paths of the sources, relative to the repository. */
export function findPackages(inputs: readonly string[]): BundledPackage[] {
  const folders = inputs.flatMap(input => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0] ?? [])
  return [...new Set(folders)].sort().map(folder => readPackage(resolve(repositoryFolder, folder)))
}

/** Their licences, which have to travel with their code. */
export function writeNotices(packages: readonly BundledPackage[]): string {
  const sections = packages.map(({ name, version, license, text }) => `## ${name} ${version} (${license})\n\n${text}\n`)
  return ['# Notices\n\nCode of these packages is part of this one.\n', ...sections].join('\n')
}

function readPackage(folder: string): BundledPackage {
  const { name, version, license, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  if (!license) throw new Error(`${name} says nothing of its licence: its code cannot be part of the package`)
  const file = readdirSync(folder).find(entry => /^licen[cs]e(\.\w+)?$/i.test(entry))
  const holder = typeof author === 'object' && author !== null ? author.name : author
  // Some packages carry the name of their licence alone.
  const text = file
    ? readFileSync(join(folder, file), 'utf8').trim()
    : `Copyright of ${holder ?? `the authors of ${name}`}.`
  return { name, version, license, text }
}
