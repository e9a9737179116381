import type { AuthContext } from '../context'
import { hashOpaqueToken, newOpaqueToken } from '../opaque-token'
import { epochSeconds, readPrivateToken, signPrivateToken } from '../session/private-token'
import type { UserTokenRecord } from '../store/auth-store'

/** What a challenge is for. One is never taken for another. */
export type Ceremony = 'register' | 'login' | 'step' | 'reauthenticate'

/** Whose challenge it is. */
export interface ChallengeOwner {
  readonly userId: string
  /** The session's id, or of a second step the hash of its challenge; null: the store keeps no sessions. */
  readonly boundTo: string | null
}

/** What WebAuthn signs, and what says that it is ours. */
export interface IssuedChallenge {
  readonly challenge: string
  readonly token: string
  readonly seconds: number
}

/** A challenge of ours that is alive. */
export interface OpenChallenge {
  readonly challenge: string
  readonly expiresAt: Date
  /** What it was issued with. */
  readonly carries: Readonly<Record<string, unknown>>
}

/** A login's waits in the autofill of a page that stays open. */
const lifeSeconds: Readonly<Record<Ceremony, number>> = { register: 300, login: 900, step: 300, reauthenticate: 300 }

/**
 * Makes a challenge of 32 random bytes. Nothing is stored: the token, under a MAC, comes back with the answer, so neither a cookie nor another
 * tab is in the way.
 * @param owner null: nobody knows yet who signs in
 */
export function issuePasskeyChallenge(
  ctx: AuthContext,
  ceremony: Ceremony,
  owner: ChallengeOwner | null,
  carries: Readonly<Record<string, unknown>> = {},
): IssuedChallenge {
  const seconds = lifeSeconds[ceremony]
  const challenge = newOpaqueToken()
  const iat = epochSeconds(ctx.now())
  const token = signPrivateToken(ctx.keys['passkey-challenge'][0], {
    typ: typeOf(ceremony),
    iat,
    exp: iat + seconds,
    cha: challenge,
    ...(owner && { sub: owner.userId, bnd: owner.boundTo }),
    ...(Object.keys(carries).length > 0 && { car: carries }),
  })
  return { challenge, token, seconds }
}

/** Null for whatever is not a living challenge of this ceremony and owner. */
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
  return { challenge: cha as string, expiresAt: new Date(Number(exp) * 1000), carries: car as Record<string, unknown> } // as it was issued
}

/** The row that uses a challenge up. Born used: the unique hash is what lets one of any number of racers through. */
export function spentChallenge(
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
