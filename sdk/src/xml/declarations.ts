import { limits } from '../../../core/protocol/limits.ts'
import type { Element, Refuse } from './elements.ts'

/** A subscription as a document has it. */
export type Declaration = {
  groupName: string
  topics: { topicName: string; receiverType: string; line: number }[]
}

/**
 * Reads PMQ's form: `consumer` elements with a `groupName`, in the root or in `consumers` there; in each of them, at any
 * depth, `topic` elements with a `name` and a `receiverType`. The root may have any name. What is in none of the places is
 * refused: a misspelt element would otherwise be a consumer that gets nothing.
 */
export function readDeclarations(root: Element, refuse: Refuse): Declaration[] {
  const lineOfGroup = new Map<string, number>()
  return consumersOf(root, refuse).map(consumer => {
    const groupName = readName(consumer, 'groupName', refuse)
    refuseSecond(lineOfGroup, groupName, consumer, `consumer of group "${groupName}"`, refuse)
    const lineOfTopic = new Map<string, number>()
    const topics = topicsOf(consumer, refuse).map(topic => {
      const topicName = readName(topic, 'name', refuse)
      refuseSecond(lineOfTopic, topicName, topic, `topic "${topicName}" of group "${groupName}"`, refuse)
      return { topicName, receiverType: readAttribute(topic, 'receiverType', refuse), line: topic.line }
    })
    return { groupName, topics }
  })
}

function consumersOf(parent: Element, refuse: Refuse): Element[] {
  return parent.children.flatMap(child => {
    if (child.name === 'consumer') return [child]
    if (child.name === 'consumers') return consumersOf(child, refuse)
    throw refuse(child.line, `<${child.name}> is no element of <${parent.name}>; it must be <consumer> or <consumers>`)
  })
}

function topicsOf(parent: Element, refuse: Refuse): Element[] {
  const topics = parent.children.flatMap(child => (child.name === 'topic' ? [child] : topicsOf(child, refuse)))
  if (topics.length > 0) return topics
  throw refuse(parent.line, `<${parent.name}> has no topic; it must have <topic name="…" receiverType="…"/>`)
}

function readName(element: Element, attribute: string, refuse: Refuse): string {
  const value = readAttribute(element, attribute, refuse)
  if (limits.namePattern.test(value)) return value
  throw refuse(element.line, `${attribute} is "${value.slice(0, 120)}"; it must be ${limits.nameRule}`)
}

function readAttribute(element: Element, attribute: string, refuse: Refuse): string {
  const value = element.attributes.get(attribute)
  if (value) return value
  const names = [...element.attributes.keys()].filter(name => name !== attribute)
  const has = value === '' ? `an empty ${attribute}` : names.length === 0 ? 'no attributes' : `only ${names.join(', ')}`
  throw refuse(element.line, `<${element.name}> has ${has}; it must have ${attribute}="…"`)
}

function refuseSecond(lines: Map<string, number>, name: string, element: Element, what: string, refuse: Refuse): void {
  const first = lines.get(name)
  if (first !== undefined) throw refuse(element.line, `there is a ${what} in line ${first} already; it must be once`)
  lines.set(name, element.line)
}
