import { XMLParser, XMLValidator } from 'fast-xml-parser'

/** An element of a document. */
export type Element = {
  name: string
  attributes: ReadonlyMap<string, string>
  children: Element[]
  /** Where it begins, from 1. */
  line: number
}

/** Makes the error of a line. */
export type Refuse = (line: number, text: string, cause?: unknown) => Error

type Node = Record<string, Node[] | undefined> & { ':@'?: Record<string, string> }

// No entity is expanded, so that a small document cannot grow, and nothing outside of it is ever read.
const parser = new XMLParser({
  preserveOrder: true,
  ignoreAttributes: false,
  attributeNamePrefix: '',
  parseAttributeValue: false,
  parseTagValue: false,
  processEntities: false,
  ignoreDeclaration: true,
  ignorePiTags: true,
  captureMetaData: true,
})

/** Reads a document's root element; throws what `refuse` makes for a document that is not well-formed. */
export function readRoot(document: string, refuse: Refuse): Element {
  // As the parser counts its positions.
  const text = document.replace(/\r\n?/g, '\n')
  const validity = XMLValidator.validate(text)
  if (validity !== true) throw refuse(validity.err.line, `the XML is broken: ${validity.err.msg}`)
  const lineAt = lineCounter(text)
  let roots: Element[]
  try {
    roots = toElements(parser.parse(text), lineAt)
  } catch (cause) {
    throw refuse(1, `the XML cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, cause)
  }
  const [root, second] = roots
  if (!root) throw refuse(1, 'the XML has no root element')
  if (second) throw refuse(second.line, `<${second.name}> is a second root element; there may be one`)
  return root
}

function toElements(nodes: Node[], lineAt: (index: number) => number): Element[] {
  return nodes.flatMap(node => {
    const name = Object.keys(node).find(key => key !== ':@' && key !== '#text')
    if (name === undefined) return []
    const { startIndex } = (node as Record<symbol, { startIndex: number }>)[metadata] ?? { startIndex: 0 }
    // Before the children's: lines are counted in the order of the document.
    const line = lineAt(startIndex)
    const attributes = new Map(Object.entries(node[':@'] ?? {}))
    return [{ name, attributes, children: toElements(node[name] ?? [], lineAt), line }]
  })
}

// The library declares it as a `Symbol`, which can name no property.
const metadata = XMLParser.getMetaDataSymbol() as unknown as symbol

/** Counts each line once, for positions that grow. */
function lineCounter(text: string): (index: number) => number {
  let counted = 0
  let line = 1
  return index => {
    for (; counted < index; counted++) if (text[counted] === '\n') line++
    return line
  }
}
