import { createHash } from 'node:crypto'
import type { PasskeyRecord } from '../../store/auth-store'

/**
 * Says whether an undo link can revert a change. A change is final if no undo link can revert it.
 * - False: the change is not final.
 * - True: the change is final, because a code confirmed it. The authenticator app of the code is older than a day.
 * - Text: the change is final, because a passkey confirmed it. The passkey is older than a day. The text is the digest of the passkey.
 */
export type Irreversibility = boolean | string

/** Returns a digest that still identifies a passkey after its row was deleted. */
export function passkeyDigest({ credentialId }: Pick<PasskeyRecord, 'credentialId'>): string {
  return createHash('sha256').update(credentialId).digest('base64url')
}

/** Writes the value as one word without spaces and dots. If an undo link can revert the change, the result is the empty string. */
export function writeIrreversibility(isFinal: Irreversibility): string {
  return isFinal === true ? 'final' : isFinal || ''
}

export function readIrreversibility(word: string | undefined): Irreversibility {
  return word === 'final' ? true : word || false
}
