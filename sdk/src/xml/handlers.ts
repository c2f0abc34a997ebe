import type { MessageHandler } from '../message.ts'

/** Finds the handler of a `receiverType`. */
export type FindHandler = (receiverType: string) => MessageHandler | undefined | PromiseLike<MessageHandler | undefined>

const modulePath = /^(\.{1,2}\/[^#]+)#(.+)$/

/**
 * Finds a handler: among those that are given, else, where it is a module path, in that module. Throws for what is not
 * there, with what would be.
 */
export async function findHandler(
  receiverType: string,
  given: Readonly<Record<string, MessageHandler>> | FindHandler,
  fileUrl: URL | undefined,
): Promise<MessageHandler> {
  const found =
    typeof given === 'function' ? await given(receiverType) : Object.hasOwn(given, receiverType) && given[receiverType]
  if (typeof found === 'function') return found
  const [, path, exportName] = modulePath.exec(receiverType) ?? []
  if (path !== undefined && exportName !== undefined) return importHandler(path, exportName, fileUrl)
  const names = typeof given === 'function' ? [] : Object.keys(given).map(name => `"${name}"`)
  const accepted = ['a module path such as "./handlers.js#ordersHandler"', ...names].reverse().join(', ')
  throw new Error(`there is no such handler; it must be ${accepted}`)
}

async function importHandler(path: string, exportName: string, fileUrl: URL | undefined): Promise<MessageHandler> {
  if (!fileUrl) throw new Error('a module path is relative to a file; give the path of the XML, or its handlers')
  const { href } = new URL(path, fileUrl)
  const module: Record<string, unknown> = await import(href)
  const handler = Object.hasOwn(module, exportName) ? module[exportName] : undefined
  if (typeof handler === 'function') return handler as MessageHandler
  const names = Object.keys(module).filter(name => typeof module[name] === 'function')
  const accepted = names.length === 0 ? 'and it exports no function' : `it must be ${names.join(', ')}`
  throw new Error(`"${exportName}" is no function of ${href}; ${accepted}`)
}
