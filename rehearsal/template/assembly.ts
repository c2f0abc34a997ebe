import { readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { asRecord, asText, type Properties } from './read.ts'

export type Resource = { id: string; type: string; properties: Properties; metadata: Properties }

/** A synthesized stack: what `cdk synth` writes, or `cdk deploy` before it deploys. */
export type Assembly = {
  stackName: string
  resources: Resource[]
  /** Holds the folders of the assets. */
  folder: string
}

/** Reads the stack of a folder that CDK has written (`cdk.out`), or a template in such a folder. */
export async function readAssembly(path: string): Promise<Assembly> {
  const isFolder = (await stat(path)).isDirectory()
  const folder = isFolder ? path : dirname(path)
  const stack = isFolder ? await findStack(folder) : { file: path, stackName: stackNameOf(path) }
  const template = asRecord(JSON.parse(await readFile(stack.file, 'utf8')), stack.file)
  return { stackName: stack.stackName, resources: readResources(template), folder }
}

async function findStack(folder: string): Promise<{ file: string; stackName: string }> {
  const manifest = asRecord(JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8')), 'manifest.json')
  const stacks = Object.entries(asRecord(manifest.artifacts, 'artifacts'))
    .map(([id, artifact]) => ({ id, artifact: asRecord(artifact, id) }))
    .filter(({ artifact }) => artifact.type === 'aws:cloudformation:stack')
  const [only] = stacks
  if (!only || stacks.length > 1) {
    const found = stacks.map(({ id }) => id).join(', ') || 'none'
    throw new Error(`${folder} has to hold one stack; it holds ${found}. Name the template of the one to rehearse`)
  }
  const { templateFile, stackName } = asRecord(only.artifact.properties, only.id)
  return {
    file: join(folder, asText(templateFile, 'templateFile')),
    stackName: stackName === undefined ? only.id : asText(stackName, 'stackName'),
  }
}

const stackNameOf = (path: string) => path.replace(/^.*[\\/]/, '').replace(/(\.template)?\.json$/, '')

function readResources(template: Properties): Resource[] {
  if (template.Conditions !== undefined) throw new Error('the rehearsal does not know Conditions of a template')
  return Object.entries(asRecord(template.Resources, 'Resources')).map(([id, value]) => {
    const { Type, Properties: properties = {}, Metadata: metadata = {} } = asRecord(value, id)
    return { id, type: asText(Type, id), properties: asRecord(properties, id), metadata: asRecord(metadata, id) }
  })
}
