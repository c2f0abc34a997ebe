const formatters = new Map<string, Intl.DateTimeFormat>()

function formatterFor(timeZone: string): Intl.DateTimeFormat {
  let formatter = formatters.get(timeZone)
  if (!formatter) {
    formatter = new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      fractionalSecondDigits: 3,
    })
    formatters.set(timeZone, formatter)
  }
  return formatter
}

/** A time as PMQ's clients read it: `yyyy-MM-dd HH:mm:ss:SSS` (a colon before the milliseconds), without its zone. */
export function formatSendTime(atMs: number, timeZone: string): string {
  const parts = Object.fromEntries(
    formatterFor(timeZone)
      .formatToParts(atMs)
      .map(part => [part.type, part.value]),
  )
  const { year, month, day, hour, minute, second, fractionalSecond } = parts
  return `${year}-${month}-${day} ${hour}:${minute}:${second}:${fractionalSecond}`
}
