import { createHash } from 'node:crypto'
import type { PasskeyRecord } from '../store/auth-store'

/**
 * Whether a factor that was older than a day confirmed a change, so that no link undoes it: false; true, by the authenticator app; or
 * the digest of the passkey.
 */
export type Finality = boolean | string

/** Names a passkey in what outlives its row. */
export function passkeyDigest({ credentialId }: Pick<PasskeyRecord, 'credentialId'>): string {
  return createHash('sha256').update(credentialId).digest('base64url')
}

/** As a word without blanks and dots; nothing where the change is not final. */
export function writeFinality(isFinal: Finality): string {
  return isFinal === true ? 'final' : isFinal || ''
}

/** Reads what `writeFinality` wrote. */
export function readFinality(word: string | undefined): Finality {
  return word === 'final' ? true : word || false
}
