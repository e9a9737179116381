import { createHash } from 'node:crypto'
import type { PasskeyRecord } from '../store/auth-store'

/**
 * Whether a link can undo a change. False: it can. True: it cannot, because a code of an authenticator app older than a day confirmed the
 * change. A text: the digest of the passkey, older than a day, that confirmed it.
 */
export type Finality = boolean | string

/** Returns a digest that still identifies a passkey after its row was deleted. */
export function passkeyDigest({ credentialId }: Pick<PasskeyRecord, 'credentialId'>): string {
  return createHash('sha256').update(credentialId).digest('base64url')
}

/** Writes the value as one word without spaces and dots; the empty string if the change can be undone. */
export function writeFinality(isFinal: Finality): string {
  return isFinal === true ? 'final' : isFinal || ''
}

export function readFinality(word: string | undefined): Finality {
  return word === 'final' ? true : word || false
}
