import { posix } from 'node:path'

/** What the files of a folder may import: files by the beginning of their path, packages by name (`node:*`: all of Node's). */
type Layer = { files: string[]; packages: string[] | 'any'; pure?: true }

/** Imports point one way: functions → core ← store, sdk → core/protocol. The longest folder that fits a file rules it. */
const layers: Record<string, Layer | 'anything'> = {
  core: { files: ['core/'], packages: ['valibot', 'lru-cache', 'node:zlib', 'node:crypto', 'node:net'], pure: true },
  // Bundled into the SDK, whose user shall not notice a dependency: nothing of the service may be drawn in with it.
  'core/protocol': { files: ['core/protocol/'], packages: ['valibot'], pure: true },
  store: { files: ['store/', 'core/'], packages: ['@aws-sdk/client-dynamodb', 'lru-cache', 'node:*'] },
  // An entry composes: it opens the store that there is on AWS, and no other. A push is a consumer: the SDK's, by its front door.
  functions: {
    files: ['functions/', 'core/', 'store/dynamo', 'sdk/src/index.ts', 'sdk/src/lambda/lambda-consumer.ts'],
    packages: [
      '@aws-sdk/client-dynamodb',
      '@aws-sdk/client-eventbridge',
      '@aws-sdk/client-lambda',
      '@aws-sdk/client-sqs',
      '@aws-lambda-powertools/metrics',
      '@middy/core',
      'aws-lambda',
      'request-filtering-agent',
      'standardwebhooks',
      'valibot',
      'node:*',
    ],
  },
  sdk: { files: ['sdk/', 'core/protocol/'], packages: ['node:*'] },
  // Modules of their own, which only who uses them loads; what they need of others is bundled in or the user's own.
  'sdk/src/notify': { files: ['sdk/', 'core/protocol/'], packages: ['node:*', 'standardwebhooks'] },
  'sdk/src/otel': { files: ['sdk/', 'core/protocol/'], packages: ['node:*', '@opentelemetry/api'] },
  // Handlers are in modules that the user's file names.
  'sdk/src/xml': { files: ['sdk/', 'core/protocol/'], packages: ['node:*', 'fast-xml-parser', 'a computed name'] },
  'sdk/build': 'anything',
  lib: {
    files: ['lib/', 'functions/edge/env.ts', 'core/protocol/'],
    packages: ['aws-cdk-lib', 'constructs', 'node:*'],
  },
  // Runs what `lib` synthesizes, from the outside: it knows the template and the wire of AWS, and nothing of what is behind.
  rehearsal: {
    files: ['rehearsal/', 'bin/host/gateway.ts', 'bin/host/server.ts', 'core/protocol/clock.ts'],
    packages: ['@aws-sdk/client-dynamodb', 'aws-lambda', 'node:*', 'a computed name'],
  },
  console: { files: ['console/', 'core/protocol/'], packages: 'any' },
  bin: 'anything',
  bench: 'anything',
  demo: 'anything',
  examples: 'anything',
  test: 'anything',
}

/** What a pure layer must be given instead: time, chance, settings and everything with an effect. */
const impure: [RegExp, string][] = [
  [/\bprocess\s*[.[]/, 'process'],
  [/\bDate\.now\b/, 'Date.now()'],
  [/\bnew Date\(\s*\)/, 'new Date()'],
  [/\bperformance\.now\b/, 'performance.now()'],
  [/\bMath\.random\b/, 'Math.random()'],
  [/\bcrypto\.(randomUUID|getRandomValues)\b/, 'crypto.random…'],
  [/\bset(Timeout|Interval|Immediate)\b/, 'a timer'],
  [/\bAbortSignal\.timeout\b/, 'AbortSignal.timeout()'],
  [/\bfetch\(/, 'fetch()'],
  [/\bconsole\./, 'console'],
]

/** The one file of a pure layer that touches the system's clock and timers. */
const clockFile = 'core/protocol/clock.ts'

/** What a source file does against the rules, one sentence each. `path` is relative to the repository, with `/`. */
export function judge(path: string, source: string): string[] {
  const folder = Object.keys(layers)
    .filter(folder => path.startsWith(`${folder}/`))
    .sort((a, b) => b.length - a.length)[0]
  const layer = folder === undefined ? undefined : layers[folder]
  if (layer === undefined) return [`${path} is in no known layer`]
  if (layer === 'anything') return []

  const found = importsOf(source)
    .filter(({ specifier, clause }) => !isAllowed(layer, path, specifier, clause))
    .map(({ specifier }) => `${path} must not import ${specifier}`)
  if (layer.pure && path !== clockFile) {
    const code = withoutComments(source, { strings: false })
    found.push(...impure.filter(([pattern]) => pattern.test(code)).map(([, name]) => `${path} must not use ${name}`))
  }
  return found
}

/** Of these modules only what always gives the same for the same. */
const pureExports: Record<string, string[]> = { 'node:crypto': ['hash'], 'node:net': ['BlockList', 'isIP'] }

function isAllowed(layer: Layer, path: string, specifier: string, clause: string): boolean {
  if (specifier.startsWith('.')) {
    const target = posix.join(posix.dirname(path), specifier)
    return layer.files.some(file => target.startsWith(file))
  }
  const only = layer.pure ? pureExports[specifier] : undefined
  if (only) return Array.from(clause.matchAll(/\w+/g), ([name]) => name).every(name => only.includes(name))
  if (layer.packages === 'any') return true
  return layer.packages.some(name =>
    name === 'node:*' ? specifier.startsWith('node:') : specifier === name || specifier.startsWith(`${name}/`),
  )
}

type Import = { specifier: string; clause: string }

/** Static and dynamic imports, re-exports and `require`, also those of types alone. A computed one is named as such. */
export function importsOf(source: string): Import[] {
  const code = withoutComments(source, { strings: true })
  const statements = code.matchAll(/\b(?:import|export)\b(?:\s+type\b)?([^'"`;()=]*?)\bfrom\s*(['"])(.+?)\2/g)
  const bare = code.matchAll(/\bimport\s*(['"])(.+?)\1/g)
  const calls = code.matchAll(/\b(?:import|require)\s*\(\s*(?:(['"])(.+?)\1)?/g)
  return [
    ...Array.from(statements, ([, clause = '', , specifier = '']) => ({ specifier, clause })),
    ...Array.from(bare, ([, , specifier = '']) => ({ specifier, clause: '' })),
    ...Array.from(calls, ([, , specifier = 'a computed name']) => ({ specifier, clause: '' })),
  ]
}

/** The source without its comments, and on request with its strings emptied, which may say what code may not. */
function withoutComments(source: string, keep: { strings: boolean }): string {
  const tokens = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`/g
  return source.replace(tokens, token => {
    if (token.startsWith('/')) return ' '
    return keep.strings || token.startsWith('`') ? token : "''"
  })
}
