import type { Declaration } from './declarations.ts'
import type { EntryTypes } from './types.ts'

/** The reference of an entry: each export with its comment as prose and its declaration as a program sees it. */
export function renderPage({ specifier, declarations: file }: EntryTypes, imports: readonly string[]): string {
  const names = new Set(file.declarations.map(({ name }) => name))
  const sections = file.declarations.map(declaration => renderDeclaration(declaration, names))
  const modules = imports.map(name => `\`${name}\``).join(', ')
  const elsewhere = file.header.flatMap(line => /^export \{ (\w+) \}/.exec(line)?.[1] ?? [])
  return [
    `# ${specifier}`,
    ...(file.introduction ? [toMarkdown(file.introduction, names)] : []),
    modules ? `It imports ${modules}.` : 'It imports nothing, not even of Node.',
    ...(elsewhere.length > 0 ? [`Also from here: ${elsewhere.map(name => `\`${name}\``).join(', ')}.`] : []),
    ...sections,
  ]
    .join('\n\n')
    .concat('\n')
}

function renderDeclaration({ name, comment, text }: Declaration, names: ReadonlySet<string>): string {
  const others = new Set([...names].filter(other => other !== name))
  const code = text.replace(/^export (declare )?/, '').replaceAll(/ +$/gm, '')
  return `## ${name}\n\n${toMarkdown(comment, others)}\n\n\`\`\`ts\n${code}\n\`\`\``
}

/** A comment as Markdown: without its stars, its tags as words, and with links to what the page has. */
function toMarkdown(comment: string, names: ReadonlySet<string>): string {
  let isCode = false
  const lines = comment
    .replace(/^\/\*\*\s?|\s*\*\/$/g, '')
    .split('\n')
    .map(line => line.replace(/^\s*\* ?/, ''))
    .filter(line => line !== '@packageDocumentation')
    .map(line => {
      if (line.startsWith('```')) isCode = !isCode
      return isCode ? line : toWords(line, names)
    })
  return lines.join('\n').trim()
}

function toWords(line: string, names: ReadonlySet<string>): string {
  return line
    .replace(/^@param (\w+) - /, '- `$1`: ')
    .replace(/^@(\w+) ?/, (_, tag: string) => `**${tag.charAt(0).toUpperCase()}${tag.slice(1)}:** `)
    .replaceAll(/\{@link (\w+)\}/g, '`$1`')
    .replaceAll(/`(\w+)`/g, (code, name: string) => (names.has(name) ? `[${code}](#${name.toLowerCase()})` : code))
}
