import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { PmqProps } from '../../lib/pmq.ts'
import { bundle } from '../lib/synthesize.ts'

export const account = { id: '123456789012', region: 'us-east-1' }
export const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }

export type Template = {
  Resources: Record<string, { Type: string; Properties: Record<string, unknown> }>
  Outputs: Record<string, object>
}

const program = fileURLToPath(new URL('../../node_modules/aws-cdk/bin/cdk', import.meta.url))

/** Runs the command line of CDK with nothing of this machine's AWS settings, and with no way to AWS. Answers with what it says. */
export async function runCdk(endpoint: string, folder: string, ...args: string[]): Promise<string> {
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    AWS_ENDPOINT_URL: endpoint,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    AWS_REGION: account.region,
    AWS_EC2_METADATA_DISABLED: 'true',
    CDK_DISABLE_CLI_TELEMETRY: 'true',
    CI: 'true',
  }
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], { env, cwd: folder })
  return stdout
}

/**
 * Synthesizes the stack into a folder that `cdk deploy --app` takes, as moto can deploy it. Two things are written otherwise
 * than we have them, for what moto 5.2 gets wrong:
 * - `Ref` of an event bus gives its name on AWS, and here an object that nothing can be done with. `Fn::GetAtt … Name` gives
 *   the name on both.
 * - An output that asks for something of an HTTP API makes each look at the stack fail after an update, since there are no
 *   HTTP APIs here. It is left out.
 */
export function synthesizeForMoto(folder: string, props: PmqProps = {}): Template {
  bundle(folder, props)
  const path = join(folder, 'Pmq.template.json')
  const template: Template = JSON.parse(readFileSync(path, 'utf8'))
  const typeOf = (id: string) => template.Resources[id]?.Type ?? ''
  const text = JSON.stringify(template).replace(/\{"Ref":"(\w+)"\}/g, (ref, id: string) =>
    typeOf(id) === 'AWS::Events::EventBus' ? JSON.stringify({ 'Fn::GetAtt': [id, 'Name'] }) : ref,
  )
  const written: Template = JSON.parse(text)
  const isOfApi = (output: object) =>
    Array.from(JSON.stringify(output).matchAll(/\["(\w+)"/g)).some(([, id = '']) =>
      typeOf(id).startsWith('AWS::ApiGatewayV2'),
    )
  written.Outputs = Object.fromEntries(Object.entries(written.Outputs).filter(([, output]) => !isOfApi(output)))
  writeFileSync(path, JSON.stringify(written))
  return written
}
