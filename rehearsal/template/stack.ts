import { account } from './account.ts'
import type { Assembly, Resource } from './assembly.ts'
import { type Addresses, defaultBus, type Identity, identify } from './identities.ts'
import { asList, asRecord, asText, type Properties } from './read.ts'

/** A resource of the template, its properties with all references resolved. */
export type Resolved = { id: string; ref: string; arn: string; properties: Properties; metadata: Properties }

export type Stack = {
  stackName: string
  folder: string
  /** All resources of a type, in the template's order. */
  all(type: string): Resolved[]
}

/** Reads the template as CloudFormation would: what is referred to gets its name, and properties the values meant. */
export function resolveStack(assembly: Assembly, addresses: Addresses): Stack {
  const { stackName, resources, folder } = assembly
  const byId = new Map(resources.map(resource => [resource.id, resource]))
  const identities = new Map<string, Identity>()
  const pseudo: Record<string, string | undefined> = {
    'AWS::AccountId': account.id,
    'AWS::Region': account.region,
    'AWS::Partition': account.partition,
    'AWS::URLSuffix': 'amazonaws.com',
    'AWS::StackName': stackName,
    'AWS::NoValue': undefined,
  }

  function identityOf(id: string): Identity {
    const known = identities.get(id)
    if (known) return known
    const resource = byId.get(id)
    if (!resource) throw new Error(`the template refers to ${id}, which it does not have`)
    const identity = identify(stackName, resource, addresses, busOf)
    identities.set(id, identity)
    return identity
  }

  /** The name of the bus that a rule listens to; a template may give its ARN. */
  function busOf({ id, properties }: Resource): string {
    const bus = resolve(properties.EventBusName)
    return bus === undefined ? defaultBus : asText(bus, id).replace(/^arn:.*event-bus\//, '')
  }

  function ref(name: string): string | undefined {
    if (name in pseudo) return pseudo[name]
    if (name.startsWith('AWS::')) throw new Error(`the rehearsal does not know the parameter ${name}`)
    return identityOf(name).ref
  }

  function attribute(id: string, name: string): string {
    const value = identityOf(id).attributes[name]
    if (value === undefined) throw new Error(`the rehearsal does not know the attribute ${name} of ${id}`)
    return value
  }

  const functions: Record<string, (argument: unknown) => unknown> = {
    Ref: name => ref(asText(name, 'Ref')),
    'Fn::GetAtt': argument => {
      const [id = '', ...rest] = typeof argument === 'string' ? argument.split('.') : asList(argument)
      return attribute(asText(id, 'Fn::GetAtt'), rest.map(part => asText(part, 'Fn::GetAtt')).join('.'))
    },
    'Fn::Join': argument => {
      const [separator, parts] = asList(argument)
      return asList(resolve(parts))
        .map(part => asText(part, 'Fn::Join'))
        .join(asText(separator, 'Fn::Join'))
    },
    'Fn::Sub': argument => {
      const [text, given = {}] = asList(argument)
      const values = asRecord(resolve(given), 'Fn::Sub')
      return asText(text, 'Fn::Sub').replace(/\$\{(!?)([^}]+)\}/g, (_, isLiteral: string, name: string) => {
        if (isLiteral) return `\${${name}}`
        if (name in values) return asText(values[name], name)
        const [id = '', ...rest] = name.split('.')
        return rest.length > 0 ? attribute(id, rest.join('.')) : asText(ref(name), name)
      })
    },
    'Fn::Select': argument => {
      const [index, list] = asList(argument)
      return asList(resolve(list))[Number(resolve(index))]
    },
    'Fn::Split': argument => {
      const [separator, text] = asList(argument)
      return asText(resolve(text), 'Fn::Split').split(asText(separator, 'Fn::Split'))
    },
  }

  function resolve(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(resolve).filter(each => each !== undefined)
    if (typeof value !== 'object' || value === null) return value
    const entries = Object.entries(value)
    const [name = '', argument] = entries[0] ?? []
    if (entries.length === 1 && (name === 'Ref' || name.startsWith('Fn::'))) {
      const evaluate = functions[name]
      if (!evaluate)
        throw new Error(`the rehearsal does not know ${name}; it knows ${Object.keys(functions).join(', ')}`)
      return evaluate(argument)
    }
    return Object.fromEntries(
      entries.map(([key, each]) => [key, resolve(each)]).filter(([, each]) => each !== undefined),
    )
  }

  const resolved = resources.map(({ id, type, properties, metadata }) => {
    const { ref, attributes } = identityOf(id)
    const arn = attributes.Arn ?? attributes.TopicArn ?? ''
    return { type, id, ref, arn, properties: asRecord(resolve(properties), id), metadata }
  })
  return { stackName, folder, all: type => resolved.filter(resource => resource.type === type) }
}
