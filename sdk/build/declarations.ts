/** A declaration of a `.d.ts` file. */
export type Declaration = {
  name: string
  isExported: boolean
  /** Its comment as it stands; empty if there is none. */
  comment: string
  /** The declaration itself, with the comments of its members. */
  text: string
}

/** What API Extractor has written for an entry: everything that its types consist of, in one file. */
export type DeclarationFile = {
  /** The comment marked `@packageDocumentation`, as it stands; empty if there is none. */
  introduction: string
  /** Directives, and imports from other packages. */
  header: string[]
  declarations: Declaration[]
}

const opening = /^(?:export )?(?:declare )?(?:abstract )?(?:type|interface|class|function|const|let|namespace) (\w+)/m
const leadingComment = /^\/\*\*[\s\S]*?\*\/\n?/

/** Blank lines stand between declarations and nowhere else in such a file: no compiler is needed to take it apart. */
export function readDeclarations(text: string): DeclarationFile {
  const file: DeclarationFile = { introduction: '', header: [], declarations: [] }
  for (const block of text.trim().split(/\n{2,}/)) {
    const comment = leadingComment.exec(block)?.[0] ?? ''
    const rest = block.slice(comment.length)
    const name = opening.exec(rest)?.[1]
    if (comment.includes('@packageDocumentation')) file.introduction = comment.trim()
    if (name !== undefined) {
      const isExported = rest.startsWith('export ')
      file.declarations.push({ name, isExported, comment: comment.trim(), text: rest })
    } else file.header.push(...rest.split('\n').filter(line => /^(import |export .* from |\/\/\/ )/.test(line)))
  }
  return file
}

/**
 * Replaces what an earlier entry of the package exports by imports from there: a type exists once, like the code. What is
 * then left and not exported by anyone could be seen by a program and not named; `unnamed` says what.
 */
export function shareDeclarations(files: ReadonlyMap<string, DeclarationFile>): {
  files: Map<string, DeclarationFile>
  unnamed: string[]
} {
  const homes = new Map<string, { fileName: string; text: string }>()
  const shared = new Map<string, DeclarationFile>()
  const unnamed: string[] = []
  for (const [fileName, file] of files) {
    const header = [...file.header]
    const isElsewhere = (declaration: Declaration) => homes.get(declaration.name)?.text === bare(declaration)
    const declarations = file.declarations.filter(declaration => !isElsewhere(declaration))
    for (const { name, isExported } of file.declarations.filter(isElsewhere)) {
      const from = `from './${homes.get(name)?.fileName}.js';`
      if (declarations.some(({ text }) => new RegExp(`\\b${name}\\b`).test(text)))
        header.push(`import type { ${name} } ${from}`)
      if (isExported) header.push(`export { ${name} } ${from}`)
    }
    for (const declaration of declarations) {
      if (declaration.isExported) homes.set(declaration.name, { fileName, text: bare(declaration) })
      else unnamed.push(`${fileName}: ${declaration.name}`)
    }
    shared.set(fileName, { ...file, header, declarations })
  }
  return { files: shared, unnamed }
}

/** The file as text again. */
export function writeDeclarations({ introduction, header, declarations }: DeclarationFile): string {
  const blocks = declarations.map(({ comment, text }) => (comment ? `${comment}\n${text}` : text))
  // Not every program has this part of the library switched on; without it `AsyncDisposable` is unknown to the compiler.
  const needsDisposable = blocks.some(block => /\b(Async)?Disposable\b/.test(block))
  const directives = needsDisposable ? ['/// <reference lib="esnext.disposable" />'] : []
  const head = [...directives, ...header].join('\n')
  return `${[head, introduction, ...blocks, 'export {};'].filter(Boolean).join('\n\n')}\n`
}

const bare = ({ text }: Declaration) => text.replace(/^export /, '')
