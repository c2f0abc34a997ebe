/** Texts that something on the way might change or refuse: what each is, and it. */
export const texts: [string, string][] = [
  ['an unfinished object', '{ac'],
  ['an apostrophe', "what's up?"],
  ['nothing', ''],
  ['blanks', ' \t\r\n '],
  ['null as a word', 'null'],
  ['a number as a word', '1e400'],
  ['JSON with __proto__', '{"__proto__":{"x":1}}'],
  ['JSON within JSON', JSON.stringify(JSON.stringify({ a: '"\\' }))],
  ['backslashes and quotes', '\\"\\\\""\\u0041'],
  ['U+0000 to U+001F', range(0x00, 0x1f)],
  ['U+007F to U+00FF', range(0x7f, 0xff)],
  ['U+2028 and U+2029', '\u2028\u2029'],
  ['U+FFFD, U+FFFE and U+FFFF', '\ufffd\ufffe\uffff'],
  ['a byte order mark', '\ufefftext\ufeff'],
  ['half a surrogate pair, high', 'a\ud800b'],
  ['half a surrogate pair, low', 'a\udfffb'],
  ['a surrogate pair the wrong way round', '\udc00\ud800'],
  ['a family', '👩‍👩‍👧‍👦'],
  ['a character beyond the basic plane', '𠮷'],
  ['right to left', 'שלום \u202eabc\u202c مرحبا'],
  ['composed', '\u00e9'],
  ['decomposed', 'e\u0301'],
  ['many brackets', '['.repeat(200_000)],
]

/** All UTF-16 units from one to another, both included. */
export function range(from: number, to: number): string {
  return Array.from({ length: to - from + 1 }, (_, index) => String.fromCharCode(from + index)).join('')
}
