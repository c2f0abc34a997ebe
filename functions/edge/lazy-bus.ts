import type { Bus } from '../../core/core.ts'

/** The bus, whose client is loaded when there is something to say: most requests of most containers have nothing. */
export function createLazyBus(busName: string): Bus {
  let opened: Promise<Bus> | undefined
  const open = () => {
    opened ??= import('./bus.ts').then(({ createEventBridgeBus }) => createEventBridgeBus(busName))
    return opened
  }
  return {
    groupChanged: async groupName => (await open()).groupChanged(groupName),
    tell: async notice => (await open()).tell(notice),
  }
}

/** For a function that announces nothing. */
export const silentBus: Bus = Object.freeze({ groupChanged: async () => {}, tell: async () => undefined })
