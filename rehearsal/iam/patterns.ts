/** Whether a text fits a pattern in which `*` stands for any characters and `?` for one. */
export function matchesPattern(pattern: string, text: string): boolean {
  let [p, t] = [0, 0]
  /** Where the last `*` was, and how much of the text it has taken: it takes one more where the rest does not fit. */
  let [star, taken] = [-1, 0]
  while (t < text.length) {
    if (pattern[p] === '*') {
      star = p++
      taken = t
    } else if (p < pattern.length && (pattern[p] === '?' || pattern[p] === text[t])) {
      p++
      t++
    } else if (star >= 0) {
      p = star + 1
      t = ++taken
    } else return false
  }
  while (pattern[p] === '*') p++
  return p === pattern.length
}

/** The same for ARNs in conditions, part by part: there a wildcard does not reach over a colon of the first five. */
export function matchesArn(pattern: string, arn: string): boolean {
  const [expected, actual] = [partsOf(pattern), partsOf(arn)]
  return (
    expected.length === 6 && actual.length === 6 && expected.every((part, i) => matchesPattern(part, actual[i] ?? ''))
  )
}

function partsOf(arn: string): string[] {
  const parts = arn.split(':')
  return parts.length <= 6 ? parts : [...parts.slice(0, 5), parts.slice(5).join(':')]
}
