/** What a message is weighed by. */
type Weighed = { readonly body: string; readonly head?: Readonly<Record<string, string>> | undefined }
type Texts = Weighed & { readonly [Name in 'key' | 'tag' | 'bizId' | 'traceId']?: string | undefined }

/** Measures what of a queue waits, wherever it does. */
export type Gauge = {
  add(messages: number, bytes: number): void
  remove(messages: number, bytes: number): void
  readonly messages: number
  readonly bytes: number
  /** False from when it is full until it is half empty: pulls then come in good sizes instead of one by one. */
  readonly wantsMore: boolean
}

/** Makes a gauge of nothing. What comes last may pass the bounds. */
export function createGauge({ maxMessages, maxBytes }: { maxMessages: number; maxBytes: number }): Gauge {
  let messages = 0
  let bytes = 0
  let isFilling = true

  function measure() {
    if (messages >= maxMessages || bytes >= maxBytes) isFilling = false
    else if (messages * 2 <= maxMessages && bytes * 2 <= maxBytes) isFilling = true
  }

  return {
    add(moreMessages, moreBytes) {
      messages += moreMessages
      bytes += moreBytes
      measure()
    },
    remove(fewerMessages, fewerBytes) {
      messages -= fewerMessages
      bytes -= fewerBytes
      measure()
    },
    get messages() {
      return messages
    },
    get bytes() {
      return bytes
    },
    get wantsMore() {
      return isFilling
    },
  }
}

/** What a message takes besides its texts. */
const overheadBytes = 100

/** Counts a character as a byte, as the engine stores all text that has no characters beyond Latin-1. */
export function sizeOf({ body, head }: Weighed): number {
  let bytes = overheadBytes + body.length
  for (const name in head) bytes += name.length + (head[name]?.length ?? 0)
  return bytes
}

/** All the texts of a message, as its handler may hand them on. */
export function callSizeOf(message: Texts): number {
  const { key = '', tag = '', bizId = '', traceId = '' } = message
  return sizeOf(message) + key.length + tag.length + bizId.length + traceId.length
}
