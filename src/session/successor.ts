import { createHmac, type KeyObject } from 'node:crypto'
import type { AuthContext } from '../context'
import { makeSessionToken, type SessionTokenId } from './session-token'

/**
 * Returns the refresh token that replaces `predecessor`. Its secret bytes are random unless there is a grace window: then a
 * late request gets
 * the same token again although no plaintext is stored, because it follows from the predecessor and the session's id under a
 * key of ours. Neither the database alone tells it, nor the predecessor alone.
 */
export function successorOf({ keys, settings }: AuthContext, predecessor: string, next: SessionTokenId): string {
  if (settings.refreshReuseGraceSeconds === 0) return makeSessionToken(keys['session-token'], 'tokens', next)
  return derived(keys['refresh-successor'][0], keys['session-token'][0], predecessor, next)
}

/** Returns every token that `successorOf` may have returned within a grace window: one for each secret, because the first may be new. */
export function possibleSuccessors({ keys }: AuthContext, predecessor: string, next: SessionTokenId): string[] {
  const [first, ...others] = keys['session-token']
  return keys['refresh-successor'].map((key, place) => derived(key, others[place - 1] ?? first, predecessor, next))
}

function derived(successorKey: KeyObject, tokenKey: KeyObject, predecessor: string, next: SessionTokenId): string {
  const secret = createHmac('sha256', successorKey)
    .update(predecessor + next.id)
    .digest()
  return makeSessionToken([tokenKey], 'tokens', next, secret)
}
