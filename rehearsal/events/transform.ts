import { asRecord, asText, type Properties } from '../template/read.ts'

/** What a target is given of an event, as text. */
export type Transform = (event: object) => string

/** Reads how a target wants its input: the event, a constant, a part of the event, or a template filled with parts. */
export function parseTransform({ Input, InputPath, InputTransformer }: Properties, place: string): Transform {
  if (Input !== undefined) {
    const input = asText(Input, place)
    return () => input
  }
  if (InputPath !== undefined) {
    const find = parsePath(asText(InputPath, place), place)
    return event => JSON.stringify(find(event))
  }
  if (InputTransformer === undefined) return event => JSON.stringify(event)
  const { InputPathsMap = {}, InputTemplate } = asRecord(InputTransformer, place)
  const paths = new Map(
    Object.entries(asRecord(InputPathsMap, place)).map(([name, path]) => [name, parsePath(asText(path, place), place)]),
  )
  paths.set('aws.events.event.json', event => event)
  return event => fill(asText(InputTemplate, place), name => paths.get(name)?.(event))
}

/** Puts values where the template names them: as JSON, and within a text as they are. */
function fill(template: string, find: (name: string) => unknown): string {
  let isWithinText = false
  return template.replace(/\\.|"|<([\w.-]+)>/g, (token, name: string | undefined) => {
    if (token === '"') isWithinText = !isWithinText
    if (name === undefined) return token
    const json = JSON.stringify(find(name) ?? '')
    return isWithinText ? json.replace(/^"|"$/g, '') : json
  })
}

/** `$.detail.name`: fields by name, nothing else. */
function parsePath(path: string, place: string): (event: object) => unknown {
  if (!/^\$(\.[\w-]+)*$/.test(path)) throw new Error(`the rehearsal does not know the path ${path} of ${place}`)
  const names = path.split('.').slice(1)
  return event =>
    names.reduce<unknown>(
      (value, name) => (typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined),
      event,
    )
}
