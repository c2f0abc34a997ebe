import { readFileSync } from 'node:fs'
import { App, type Stack } from 'aws-cdk-lib'
import { Template } from 'aws-cdk-lib/assertions'
import type { PmqProps } from '../../lib/pmq.ts'
import { PmqStack } from '../../lib/pmq-stack.ts'

// `npm run synth` validates the template; a test that reads one need not do it again.
process.env.CDK_VALIDATION = 'false'

const { context } = JSON.parse(readFileSync(new URL('../../cdk.json', import.meta.url), 'utf8'))

/** The stack as `cdk deploy` would have it, with the flags of `cdk.json`, but without bundling the functions. */
export function synthesize(props: PmqProps = {}): Template {
  return Template.fromStack(createStack({ ...context, 'aws:cdk:bundling-stacks': [] }, props))
}

/** The same with the functions bundled; answers with each function's name and the folder of its bundle. */
export function bundle(outdir: string, props: PmqProps = {}): { name: string; folder: string }[] {
  // The command line of CDK asks for these two, which say what comes from where.
  const metadata = { 'aws:cdk:enable-path-metadata': true, 'aws:cdk:enable-asset-metadata': true }
  const stack = createStack({ ...context, ...metadata }, props, outdir)
  const resources = Template.fromStack(stack).findResources('AWS::Lambda::Function')
  return Object.values(resources).map(({ Metadata }) => ({
    name: Metadata['aws:cdk:path'].split('/').at(-3).toLowerCase(),
    folder: `${outdir}/${Metadata['aws:asset:path']}`,
  }))
}

function createStack(context: Record<string, unknown>, props: PmqProps, outdir?: string): Stack {
  return new PmqStack(new App({ context, ...(outdir !== undefined && { outdir }) }), 'Pmq', props)
}
