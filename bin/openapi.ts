import { readFileSync, writeFileSync } from 'node:fs'
import { toJsonSchema, toJsonSchemaDefs } from '@valibot/to-json-schema'
import type * as v from 'valibot'
import * as admin from '../core/protocol/admin.ts'
import * as alarms from '../core/protocol/alarms.ts'
import * as audit from '../core/protocol/audit.ts'
import * as claims from '../core/protocol/claims.ts'
import * as commit from '../core/protocol/commit.ts'
import { type Endpoint, endpoints } from '../core/protocol/endpoints.ts'
import { type ErrorCode, errorTable } from '../core/protocol/errors.ts'
import * as failed from '../core/protocol/failed.ts'
import * as failures from '../core/protocol/failures.ts'
import * as fields from '../core/protocol/fields.ts'
import * as membership from '../core/protocol/membership.ts'
import * as meta from '../core/protocol/meta.ts'
import * as publish from '../core/protocol/publish.ts'
import * as pull from '../core/protocol/pull.ts'
import * as targets from '../core/protocol/targets.ts'
import * as tool from '../core/protocol/tool.ts'

/** Where the document is kept. A test fails when it is not what `renderOpenApi` would write. */
export const openApiFile = new URL('../docs/openapi.json', import.meta.url)

/** The exported schemas of the protocol, by name: the components of the document. */
const schemas = Object.fromEntries(
  [publish, membership, pull, commit, failures, failed, claims, meta, tool, admin, alarms, audit, targets].flatMap(
    module =>
      Object.entries<unknown>(module)
        .filter((entry): entry is [string, v.GenericSchema] => isSchema(entry[1]))
        .map(([name, schema]): [string, v.GenericSchema] => [capitalized(name), schema]),
  ),
)
const { nameSchema } = toJsonSchemaDefs({ nameSchema: fields.name })
const nameOfSchema = new Map(Object.entries(schemas).map(([name, schema]) => [schema, name]))

/** The document as the file has it. */
export function renderOpenApi(): string {
  return `${JSON.stringify(buildOpenApi(), null, 2)}\n`
}

/** The service's API as an OpenAPI 3.1 document, made from the same table and schemas that the service runs on. */
function buildOpenApi() {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  return {
    openapi: '3.1.0',
    info: {
      title: 'PMQ',
      version,
      description:
        "Topics cut into ordered queues, and consumer groups that pull and commit. Client endpoints are PMQ's: they " +
        'answer a business refusal with status 200 and `suc: false`. Absent and `null` mean the same in their requests.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    paths: buildPaths(),
    components: { schemas: buildSchemas(), responses: buildErrors() },
  }
}

function buildPaths() {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const [name, endpoint] of Object.entries<Endpoint>(endpoints)) {
    const path = paths[endpoint.path] ?? {}
    path[endpoint.method.toLowerCase()] = buildOperation(name, endpoint)
    paths[endpoint.path] = path
  }
  return paths
}

function buildOperation(name: string, { method, path, function: tag, request, response, status, summary }: Endpoint) {
  const changesSomething = tag === 'admin' && method !== 'GET'
  const body = method === 'GET' ? undefined : request
  const inPath = Array.from(path.matchAll(/\{(\w+)\}/g), ([, parameter]) => ({
    name: parameter,
    in: 'path',
    required: true,
    schema: nameSchema,
  }))
  const parameters = [...inPath, ...(request && !body ? inQuery(request) : [])]
  const codes: ErrorCode[] = [
    ...(parameters.length > 0 || request ? (['bad_request'] as const) : []),
    ...(tag === 'admin' && inPath.length > 0 ? (['not_found'] as const) : []),
    ...(changesSomething ? [inPath.length > 0 ? ('conflict' as const) : ('already_exists' as const)] : []),
    ...(body ? (['payload_too_large'] as const) : []),
    'throttled',
    'internal',
    'unavailable',
  ]
  return {
    operationId: name,
    summary,
    tags: [tag],
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: content(body) } }),
    responses: {
      [status ?? 200]: { description: status === 201 ? 'Created.' : 'Answered.', content: content(response) },
      ...Object.fromEntries(codes.map(code => [errorTable[code].status, { $ref: `#/components/responses/${code}` }])),
    },
  }
}

/** The query parameters that a schema names. */
function inQuery(request: v.GenericSchema) {
  const { properties = {}, required = [] } = toJsonSchema(request, { typeMode: 'input', target: 'draft-2020-12' })
  return Object.entries(properties).map(([parameter, schema]) => ({
    name: parameter,
    in: 'query',
    required: required.includes(parameter),
    schema,
  }))
}

function buildSchemas() {
  // Input and output are the same but for defaults, which only the input may leave out.
  return toJsonSchemaDefs(schemas, {
    typeMode: 'input',
    target: 'draft-2020-12',
    overrideRef: ({ referenceId }) => `#/components/schemas/${referenceId}`,
  })
}

function buildErrors() {
  return Object.fromEntries(
    Object.entries(errorTable).map(([code, { meaning, retryable }]) => [
      code,
      {
        description: `${meaning}${retryable ? ' May be tried again.' : ''}`,
        ...(retryable && {
          headers: { 'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' } } },
        }),
        content: content(admin.errorBody),
      },
    ]),
  )
}

function content(schema: v.GenericSchema) {
  if (schema.type === 'string') return { 'text/plain': { schema: { type: 'string' } } }
  const name = nameOfSchema.get(schema)
  if (name === undefined) throw new Error('a schema of an endpoint must be exported by its module in core/protocol')
  return { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } }
}

function isSchema(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'schema'
}

function capitalized(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1)
}

if (import.meta.main) writeFileSync(openApiFile, renderOpenApi())
