import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { dynoxide, type Engine, type RunningEngine, startEngine } from '../../rehearsal/engine.ts'

export { dynoxide, type Engine, type RunningEngine }

/**
 * Every engine that tests know of. A file starts one process of each, and gives every store table names of its own.
 * `PMQ_TEST_DYNAMODB_ENDPOINT` adds one that runs already (DynamoDB Local, say).
 */
export function engines(): Engine[] {
  const given = process.env.PMQ_TEST_DYNAMODB_ENDPOINT
  return given === undefined ? [dynoxide(), moto()] : [dynoxide(), moto(), running(given)]
}

/** Python's mock of AWS. Its threads overwrite each other's updates of an item, so it gets one request at a time. */
export function moto(): Engine {
  const binary = onPath('moto_server')
  return {
    name: 'moto',
    ...(binary === undefined && { skip: 'moto_server is not on the PATH' }),
    start: () => startEngine(binary ?? 'moto_server', port => ['-H', '127.0.0.1', '-p', String(port)], 1),
  }
}

const running = (endpoint: string): Engine => ({
  name: endpoint,
  start: async () => ({ endpoint, maxConnections: 100, stop: async () => {} }),
})

function onPath(name: string): string | undefined {
  const candidates = (process.env.PATH ?? '').split(delimiter).map(folder => join(folder, name))
  return candidates.find(path => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
