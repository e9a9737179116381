import type { AuthContext } from '../context'
import { hashOpaqueToken, newOpaqueToken } from '../core/opaque-token'
import { epochSeconds, readPrivateToken, signPrivateToken } from '../sessions/private-token'
import type { UserTokenRecord } from '../store/auth-store'

/** The purpose of a challenge. A challenge is valid only for its own purpose. */
export type Ceremony = 'register' | 'login' | 'step' | 'reauthenticate'

/** The account and session that a challenge belongs to. */
export interface ChallengeOwner {
  readonly userId: string
  /** The session's id. For the second step of a login, the hash of the login's challenge. Null if the store keeps no sessions. */
  readonly boundTo: string | null
}

/** A challenge for WebAuthn, and a token that shows that we issued the challenge. */
export interface IssuedChallenge {
  readonly challenge: string
  readonly token: string
  readonly seconds: number
}

/** A valid challenge that we issued. */
export interface OpenChallenge {
  readonly challenge: string
  readonly expiresAt: Date
  /** The extra values that were passed when the challenge was issued. */
  readonly carries: Readonly<Record<string, unknown>>
}

/**
 * The lifetime of a challenge in seconds. A login challenge lives longer, because a page that stays open uses the challenge for autofill.
 */
const lifeSeconds: Readonly<Record<Ceremony, number>> = { register: 300, login: 900, step: 300, reauthenticate: 300 }

/**
 * Makes a challenge of 32 random bytes and stores nothing. The token has a MAC, and the client sends the token back with the response.
 * Therefore the challenge needs no cookie, and several tabs do not disturb each other.
 * @param owner null if the account is not known yet
 * @param lasts how long the token is valid, in seconds. `seconds` of the result is how long a browser waits for the person
 */
export function issuePasskeyChallenge(
  ctx: AuthContext,
  ceremony: Ceremony,
  owner: ChallengeOwner | null,
  carries: Readonly<Record<string, unknown>> = {},
  lasts = lifeSeconds[ceremony],
): IssuedChallenge {
  const seconds = lifeSeconds[ceremony]
  const challenge = newOpaqueToken()
  const iat = epochSeconds(ctx.now())
  const token = signPrivateToken(ctx.keys['passkey-challenge'][0], {
    typ: typeOf(ceremony),
    iat,
    exp: iat + lasts,
    cha: challenge,
    ...(owner && { sub: owner.userId, bnd: owner.boundTo }),
    ...(Object.keys(carries).length > 0 && { car: carries }),
  })
  return { challenge, token, seconds }
}

/** Returns the challenge of a token if the token is valid, and has this purpose and this owner. Otherwise returns null. */
export function readPasskeyChallenge(
  ctx: AuthContext,
  ceremony: Ceremony,
  owner: ChallengeOwner | null,
  token: string,
): OpenChallenge | null {
  const claims = readPrivateToken(ctx.keys['passkey-challenge'], token, { typ: typeOf(ceremony), at: ctx.now() })
  if (!claims || typeof claims['cha'] !== 'string') return null
  const { cha, exp, sub, bnd, car = {} } = claims
  if (owner && (sub !== owner.userId || bnd !== owner.boundTo)) return null
  return { challenge: cha as string, expiresAt: new Date(Number(exp) * 1000), carries: car as Record<string, unknown> } // as we wrote it
}

/**
 * Returns the row that marks a challenge as used. The row is inserted as used. The hash in the row is unique, so only one of many
 * concurrent requests succeeds.
 */
export function usedChallenge(
  ctx: AuthContext,
  userId: string,
  { challenge, expiresAt }: Pick<OpenChallenge, 'challenge' | 'expiresAt'>,
): Omit<UserTokenRecord, 'id'> {
  const now = ctx.now()
  return {
    userId,
    tokenHash: hashOpaqueToken(challenge),
    purpose: 'PASSKEY_CHALLENGE',
    payload: null,
    expiresAt,
    usedAt: now,
    createdAt: now,
  }
}

function typeOf(ceremony: Ceremony): string {
  return `passkey-${ceremony}`
}
