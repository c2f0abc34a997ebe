import { timingSafeEqual } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import type { Clock } from '../../../core/protocol/clock.ts'
import { invalidOption } from '../options.ts'

/** True if the headers sign this text, by one of the secrets and at about this time. */
export type Verify = (header: (name: string) => string | undefined, text: string) => boolean

/** What a secret may have, by the standard, in bytes. */
const minSecretBytes = 24
const maxSecretBytes = 64

/**
 * Verifies signatures of Standard Webhooks. The library signs, and this compares: its own check is bound to the system's
 * clock and to five minutes. A secret's place in the list shows in no timing, nor does how much of a signature was right.
 */
export function createVerify(secrets: readonly string[], toleranceMs: number, clock: Pick<Clock, 'now'>): Verify {
  const signers = Array.from(secrets, createSigner)
  return (header, text) => {
    const webhookId = header('webhook-id')
    const timestamp = header('webhook-timestamp')
    const signatures = header('webhook-signature')
    if (!webhookId || !signatures || timestamp === undefined || !/^\d{1,12}$/.test(timestamp)) return false
    const signedAtMs = Number(timestamp) * 1000
    if (Math.abs(clock.now() - signedAtMs) > toleranceMs) return false
    const given = signatures.split(' ').map(signature => Buffer.from(signature))
    let isSigned = false
    for (const signer of signers) {
      const expected = Buffer.from(signer.sign(webhookId, new Date(signedAtMs), text))
      for (const signature of given) {
        if (signature.length === expected.length && timingSafeEqual(signature, expected)) isSigned = true
      }
    }
    return isSigned
  }
}

function createSigner(secret: unknown, index: number): Webhook {
  const base64 = typeof secret === 'string' ? secret.replace(/^whsec_/, '') : ''
  const bytes = Buffer.from(base64, 'base64')
  // The text of what is wrong must not hold the secret, as those of other options hold their values.
  if (bytes.toString('base64') !== base64 || bytes.length < minSecretBytes || bytes.length > maxSecretBytes)
    throw invalidOption(
      `notify receiver: secrets[${index}] is no secret of Standard Webhooks; it must be ` +
        `"whsec_" and ${minSecretBytes} to ${maxSecretBytes} bytes as base64`,
    )
  return new Webhook(base64)
}
