import {
  bodyOf,
  type Handler,
  type Json,
  makeAnswer,
  readAnswer,
  targetOf,
  textOf,
  type WireAnswer,
  type WireOptions,
  type WireRequest,
  withBody,
} from './dynamo-wire.ts'

type LogWrite = { table: string; q: string; o: string }

/**
 * A replica that is behind by at most `window` writes. It answers reads that did not ask for consistency:
 * - a query of the log either as it was some writes ago, or with some of the last writes missing, one by one (a query is
 *   no snapshot, so a later item may be there before an earlier one);
 * - a get with its own former answer.
 */
export function createStaleReplica(random: () => number, window: number) {
  const logWrites: LogWrite[] = []
  const formerGets = new Map<string, { text: string; writes: number }>()
  let writes = 0

  /** Takes notice of what was written. */
  function wrote(request: WireRequest): void {
    writes++
    if (targetOf(request) !== 'PutItem') return
    const { TableName, Item } = bodyOf(request) as { TableName: string; Item: Json }
    const { q, o } = Item as { q?: { N: string }; o?: { N: string } }
    if (q === undefined || o === undefined) return
    logWrites.push({ table: TableName, q: q.N, o: o.N })
    if (logWrites.length > window) logWrites.shift()
  }

  function hide(table: string): LogWrite[] {
    const wholly = random() < 0.5
    const from = Math.floor(random() * logWrites.length)
    return logWrites.filter((write, i) => write.table === table && (wholly ? i >= from : random() < 0.5))
  }

  /** Asks for as many items more as may be hidden: a real replica fills its page with what it has. */
  async function query(handler: Handler, request: WireRequest, options: WireOptions): Promise<WireAnswer | undefined> {
    const asked = bodyOf(request) as { TableName: string; Limit?: number }
    const hidden = hide(asked.TableName)
    if (hidden.length === 0) return undefined
    const limit = asked.Limit ?? Number.POSITIVE_INFINITY
    const wider = Number.isFinite(limit) ? withBody(request, { ...asked, Limit: limit + hidden.length }) : request
    const { status, text } = await readAnswer(await handler.handle(wider, options))
    if (status !== 200) return makeAnswer(status, text)

    type Found = Json & { q: { N: string }; o: { N: string } }
    const answer = JSON.parse(text) as Json & { Items: Found[] }
    const seen = answer.Items.filter(({ q, o }) => !hidden.some(write => write.q === q.N && write.o === o.N))
    const items = seen.slice(0, limit)
    const last = items.at(-1)
    const cut = last !== undefined && items.length < seen.length
    const stale: Json = { ...answer, Items: items, Count: items.length, ScannedCount: items.length }
    if (cut) stale.LastEvaluatedKey = { q: last.q, o: last.o }
    return makeAnswer(200, JSON.stringify(stale))
  }

  return {
    wrote,

    /** What the replica answers, or undefined where it knows nothing else than what is true. */
    async answer(handler: Handler, request: WireRequest, options: WireOptions): Promise<WireAnswer | undefined> {
      if (bodyOf(request).ConsistentRead === true) return undefined
      if (targetOf(request) === 'Query') return query(handler, request, options)
      if (targetOf(request) !== 'GetItem') return undefined
      const former = formerGets.get(textOf(request))
      if (former === undefined || writes - former.writes > window || writes === former.writes) return undefined
      return makeAnswer(200, former.text)
    },

    /** Keeps a true answer, to give it once it is outdated. */
    async remember(request: WireRequest, answer: WireAnswer): Promise<WireAnswer> {
      if (targetOf(request) !== 'GetItem' || bodyOf(request).ConsistentRead === true) return answer
      const { status, text } = await readAnswer(answer)
      if (status === 200) formerGets.set(textOf(request), { text, writes })
      return makeAnswer(status, text)
    },
  }
}
