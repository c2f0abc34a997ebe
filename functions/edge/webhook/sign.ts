import { Webhook } from 'standardwebhooks'

/**
 * The headers of Standard Webhooks: an id that stays when a delivery is repeated, the time, and a signature by each of the
 * secrets, so that a receiver may know any of them while they are rotated. Without secrets there is none. Throws if one of
 * them is no secret, and does not say what it is.
 */
export function signatureHeaders(
  secrets: readonly string[],
  deliveryId: string,
  nowMs: number,
  body: string,
): Record<string, string> {
  const signatures = secrets.map(secret => createSigner(secret).sign(deliveryId, new Date(nowMs), body))
  return {
    'webhook-id': deliveryId,
    'webhook-timestamp': String(Math.floor(nowMs / 1000)),
    ...(signatures.length > 0 && { 'webhook-signature': signatures.join(' ') }),
  }
}

function createSigner(secret: string): Webhook {
  try {
    return new Webhook(secret)
  } catch {
    throw new Error('a secret of the target is no secret of Standard Webhooks')
  }
}
