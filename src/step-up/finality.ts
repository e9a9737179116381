import { createHash } from 'node:crypto'
import type { PasskeyRecord } from '../store/auth-store'

/**
 * Says whether an undo link can revert a change. False: an undo link can revert the change. In all other cases the change is final: no undo
 * link can revert the change. True: a code of an authenticator app older than a day confirmed the change. Text: the digest of the passkey
 * that confirmed the change; the passkey is older than a day.
 */
export type Finality = boolean | string

/** Returns a digest that still identifies a passkey after its row was deleted. */
export function passkeyDigest({ credentialId }: Pick<PasskeyRecord, 'credentialId'>): string {
  return createHash('sha256').update(credentialId).digest('base64url')
}

/** Writes the value as one word without spaces and dots. If an undo link can revert the change, the result is the empty string. */
export function writeFinality(isFinal: Finality): string {
  return isFinal === true ? 'final' : isFinal || ''
}

export function readFinality(word: string | undefined): Finality {
  return word === 'final' ? true : word || false
}
