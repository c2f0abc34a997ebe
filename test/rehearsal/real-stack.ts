import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Endpoint, type EndpointName, endpoints } from '../../core/protocol/endpoints.ts'
import type { PmqProps } from '../../lib/pmq.ts'
import { type Rehearsal, type RehearsalOptions, startRehearsal } from '../../rehearsal/rehearsal.ts'
import { bundle } from '../lib/synthesize.ts'

type Resource = { Type: string; Properties: Record<string, unknown> }
export type Resources = Record<string, Resource>

/** The stack as `cdk deploy` would have it, bundles and all: synthesized once for a file of tests. */
export function synthesizeOnce(props: PmqProps = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'pmq-rehearsed-'))
  bundle(folder, props)
  let changed = 0
  return {
    folder,
    /** The path of a template in which something was changed. */
    change(edit: (resources: Resources) => void): string {
      const template: { Resources: Resources } = JSON.parse(readFileSync(join(folder, 'Pmq.template.json'), 'utf8'))
      edit(template.Resources)
      const path = join(folder, `Changed${++changed}.template.json`)
      writeFileSync(path, JSON.stringify(template))
      return path
    },
    remove: () => rmSync(folder, { recursive: true }),
  }
}

export type RehearsedService = Rehearsal & {
  called: Set<EndpointName>
  /** As `Containers` have it: over HTTP, through API Gateway, Lambda and the policies. */
  // biome-ignore lint/suspicious/noExplicitAny: as what is parsed.
  call(name: EndpointName, request?: object, parameters?: Record<string, string>): Promise<any>
  tick(detail?: { groupName?: string }, type?: string): Promise<void>
  send(
    name: EndpointName,
    request?: object,
    parameters?: Record<string, string>,
  ): Promise<{ status: number; text: string }>
  [Symbol.asyncDispose](): Promise<void>
}

/** Starts a rehearsal of it. Schedules come due when the test says so. */
export async function rehearseService(path: string, options: RehearsalOptions = {}): Promise<RehearsedService> {
  const rehearsal = await startRehearsal(path, { runsSchedules: false, ...options })
  const called = new Set<EndpointName>()

  async function send(name: EndpointName, request?: object, parameters: Record<string, string> = {}) {
    const { method, path }: Endpoint = endpoints[name]
    const url = rehearsal.url + path.replace(/\{(\w+)\}/g, (_, parameter) => parameters[parameter] ?? '')
    const headers = { connection: 'close' }
    const query = method === 'GET' && request ? `?${new URLSearchParams(request as Record<string, string>)}` : ''
    const body = method === 'GET' ? {} : request && { body: JSON.stringify(request) }
    const answer = await fetch(`${url}${query}`, { method, headers, ...body })
    return {
      status: answer.status,
      text: await answer.text(),
      isText: answer.headers.get('content-type')?.startsWith('text/'),
    }
  }

  return {
    ...rehearsal,
    called,
    send,
    async call(name, request, parameters) {
      const { status, text, isText } = await send(name, request, parameters)
      const parsed = isText ? { text } : JSON.parse(text)
      assert.ok(status < 300 && parsed.suc !== false, `${name}: ${status} ${text}`)
      called.add(name)
      await rehearsal.settled()
      return parsed
    },
    // What is said on the bus comes by itself here.
    tick: (_detail, type) => (type === undefined ? rehearsal.fireSchedules() : rehearsal.settled()),
    [Symbol.asyncDispose]: rehearsal.stop,
  }
}
