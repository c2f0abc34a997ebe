import { maxAnswerKept } from '../../../core/notify/target.ts'

/** The beginning of what a target answered, in at most 1 KB of UTF-8 that ends with a whole character. */
export function keepAnswer(answer: string): string {
  const bytes = Buffer.from(answer)
  if (bytes.length <= maxAnswerKept) return answer
  return new TextDecoder().decode(bytes.subarray(0, maxAnswerKept), { stream: true })
}
