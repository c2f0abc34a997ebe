/** A thousand one after the other would take longer than a request may; all at once, more than a table may be asked. */
const atOnce = 25

/** Does something for each item, some at once. */
export async function forEachOf<T>(
  items: readonly T[],
  act: (item: T, index: number) => Promise<unknown>,
): Promise<void> {
  for (let from = 0; from < items.length; from += atOnce) {
    await Promise.all(items.slice(from, from + atOnce).map((item, i) => act(item, from + i)))
  }
}
