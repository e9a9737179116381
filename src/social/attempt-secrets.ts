import { createHmac } from 'node:crypto'
import type { AuthContext } from '../context'
import type { KeyList } from '../core/keys'
import { type Attempt, attemptKeyOf } from './state-cookie'

/** The secrets derived from an attempt's random value. The server stores none of them, and the browser never gets the verifier. */
export interface AttemptSecrets {
  state: string
  /** The PKCE verifier (RFC 7636 section 4.1): 43 characters. */
  codeVerifier: string
  /** The nonce (OpenID Connect Core section 15.5.2). */
  nonce: string
}

/** Derives the secrets of an attempt. The same attempt always has the same secrets. */
export function secretsOf({ keys }: AuthContext, attempt: Attempt): AttemptSecrets {
  const { random } = attempt
  const derive = (derived: KeyList) => createHmac('sha256', attemptKeyOf(derived, attempt)).update(random).digest('base64url')
  return { state: random, codeVerifier: derive(keys.pkce), nonce: derive(keys.nonce) }
}
