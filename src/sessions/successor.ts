import { createHmac, type KeyObject } from 'node:crypto'
import type { AuthContext } from '../context'
import { makeSessionToken, type SessionTokenId } from './session-token'

/**
 * Returns the refresh token that replaces `predecessor`. Without a grace period, its secret bytes are random. With a grace period, the
 * function derives the secret bytes from the predecessor and the session's id, with our key. So a late request gets the first request's
 * token again, although doorward stores no token. The database alone does not reveal the token. The predecessor alone does not reveal the
 * token either.
 */
export function successorOf({ keys, settings }: AuthContext, predecessor: string, next: SessionTokenId): string {
  if (settings.refreshReuseGraceSeconds === 0) return makeSessionToken(keys['session-token'], 'tokens', next)
  return derived(keys['refresh-successor'][0], keys['session-token'][0], predecessor, next)
}

/**
 * Returns every token that `successorOf` could have returned with a grace period. `jwtSecret` can list several secrets, and the first one
 * makes new tokens. The result has one token for each secret, because the first secret may have changed after the successor was made.
 */
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
