/**
 * A network in which units flow, each link at a cost that grows with every unit: the nth costs `weight` × (2n - 1), so
 * that n cost `weight` × n², which is least where units are spread evenly. Each of the first `home` costs 1 less.
 */
export type Link = { from: Junction; to: Junction; flow: number; home: number; readonly weight: number }
export type Junction = {
  links: Link[]
  /** The least that a unit more at this junction was found to cost, wherever it comes from; and on which link it comes. */
  price: number
  cause: { link: Link; from: Junction } | undefined
  isListed: boolean
}

export const createJunction = (): Junction => ({ links: [], price: 0, cause: undefined, isListed: false })

export function connect<L extends Link>(link: L): L {
  link.from.links.push(link)
  link.to.links.push(link)
  return link
}

export const costOfMore = ({ flow, home, weight }: Link) => weight * (2 * flow + 1) - (flow < home ? 1 : 0)
export const gainOfLess = ({ flow, home, weight }: Link) => weight * (2 * flow - 1) - (flow <= home ? 1 : 0)

/**
 * Sends units other ways until the whole costs as little as it can. Costs are convex: while they are not the least, one
 * unit can be sent around some circle for less than nothing, which is where lowering the prices of neighbours comes back
 * to where it came from. Prices outlast that, so that only what is near the circle has to be looked at again.
 */
export function reroute(junctions: readonly Junction[]): void {
  const list: Junction[] = []
  enlist(junctions, list)
  for (const junction of list) {
    junction.isListed = false
    const end = lowerPrices(junction, list)
    if (end) enlist(sendAround(end), list)
  }
}

function enlist(junctions: readonly Junction[], list: Junction[]): void {
  for (const junction of junctions) {
    if (!junction.isListed) list.push(junction)
    junction.isListed = true
  }
}

/** Lowers the prices of all that can be had for less by way of `junction`. Returns an end of a circle, if one closes. */
function lowerPrices(junction: Junction, list: Junction[]): Junction | undefined {
  for (const link of junction.links) {
    const isForward = link.from === junction
    if (!isForward && link.flow === 0) continue
    const next = isForward ? link.to : link.from
    const price = junction.price + (isForward ? costOfMore(link) : -gainOfLess(link))
    if (price >= next.price) continue
    const isCircle = isCausedBy(junction, next)
    next.cause = { link, from: junction }
    if (isCircle) return next
    next.price = price
    enlist([next], list)
  }
  return undefined
}

function isCausedBy(junction: Junction, earlier: Junction): boolean {
  for (let at: Junction | undefined = junction; at; at = at.cause?.from) if (at === earlier) return true
  return false
}

/** One unit more on every link forward, one less on every link back. What links cost has changed: no cause stands. */
function sendAround(end: Junction): Junction[] {
  const circle: Junction[] = []
  for (let at = end; at.cause; ) {
    const { link, from } = at.cause
    link.flow += link.to === at ? 1 : -1
    at.cause = undefined
    circle.push(at)
    at = from
  }
  return circle
}
