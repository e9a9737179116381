import type { AuthContext } from '../context'
import { hashOpaqueToken, newOpaqueToken } from '../core/opaque-token'
import { flag, type JsonSchema, shape, string } from '../http/description'
import { epochSeconds, readPrivateToken, signPrivateToken } from '../sessions/challenge'
import type { PasskeyRecord, UserTokenRecord } from '../store/auth-store'
import type { CredentialDescriptor } from './webauthn/ceremonies'

/** A challenge is valid only for its own purpose. */
export type Ceremony = 'register' | 'signup' | 'login' | 'step' | 'reauthenticate'

export interface ChallengeOwner {
  readonly userId: string
  /** The session's id. For the second step of a login, the hash of the login's challenge. Null if the store keeps no sessions. */
  readonly boundTo: string | null
}

/** Signs up, and has no account yet. */
export interface NewcomerOfChallenge {
  readonly userId: null
  /** The hash of the address. */
  readonly boundTo: string
}

interface IssuedChallenge {
  readonly challenge: string
  readonly token: string
  readonly seconds: number
}

export interface OpenChallenge {
  readonly challenge: string
  readonly expiresAt: Date
  /** Passed when the challenge was issued. */
  readonly carries: Readonly<Record<string, unknown>>
}

export const signupSeconds = 300

/** Seconds. A login challenge lives longer, because a page that stays open uses it for autofill. */
const lifeSeconds: Readonly<Record<Ceremony, number>> = { register: 300, signup: signupSeconds, login: 900, step: 300, reauthenticate: 300 }

/**
 * Stores nothing: the client sends the token, which has a MAC, back. So no cookie is needed, and tabs do not disturb each other.
 * @param owner null if the account is not known yet
 * @param lasts how long the token is valid, in seconds. `seconds` of the result is how long a browser waits for the person
 */
export function issuePasskeyChallenge(
  ctx: AuthContext,
  ceremony: Ceremony,
  owner: ChallengeOwner | NewcomerOfChallenge | null,
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

export function readPasskeyChallenge(
  ctx: AuthContext,
  ceremony: Ceremony,
  owner: ChallengeOwner | NewcomerOfChallenge | null,
  token: string,
): OpenChallenge | null {
  const claims = readPrivateToken(ctx.keys['passkey-challenge'], token, { typ: typeOf(ceremony), at: ctx.now() })
  if (!claims || typeof claims['cha'] !== 'string') return null
  const { cha, exp, sub, bnd, car = {} } = claims
  if (owner && (sub !== owner.userId || bnd !== owner.boundTo)) return null
  return { challenge: cha as string, expiresAt: new Date(Number(exp) * 1000), carries: car as Record<string, unknown> } // as we wrote it
}

/** Inserted as used. Its hash is unique, so only one of many concurrent requests succeeds. */
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

/** The options that begin a ceremony. Send `challenge` back together with the browser's response. */
export interface PasskeyOptions<Options> {
  /** The options for `navigator.credentials`. Parse them with `parseCreationOptionsFromJSON` or `parseRequestOptionsFromJSON`. */
  options: Options
  /** An opaque text. Keep the text until the browser has responded, and pass it on with the response. */
  challenge: string
}

/** A passkey whose id is stored as a hash has none, because the id itself is unknown. */
export function descriptorsOf(passkeys: readonly PasskeyRecord[]): CredentialDescriptor[] {
  return passkeys
    .filter(({ credentialId }) => !credentialId.includes(':'))
    .map(({ credentialId: id, transports }) => ({
      id,
      type: 'public-key',
      ...(transports !== '' && { transports: transports.split(' ') }),
    }))
}

/** Browsers ignore the additional field. */
export function optionsBody({ options, challenge }: PasskeyOptions<object>): object {
  return { ...options, challenge_token: challenge }
}

const descriptor = {
  ...shape('PasskeyDescriptor', { id: string, type: { const: 'public-key' }, transports: { type: 'array', items: string } }),
  required: ['id', 'type'],
}
const descriptors: JsonSchema = { type: 'array', items: descriptor }

export const creationOptionsSchema = shape('PasskeyCreationOptions', {
  rp: shape('RelyingParty', { id: string, name: string }),
  user: shape('PasskeyUser', { id: string, name: string, displayName: string }),
  challenge: string,
  pubKeyCredParams: { type: 'array', items: shape('PasskeyAlgorithm', { type: string, alg: { type: 'integer' } }) },
  timeout: { type: 'integer' },
  excludeCredentials: descriptors,
  authenticatorSelection: shape('PasskeySelection', { residentKey: string, requireResidentKey: flag, userVerification: string }),
  attestation: string,
  challenge_token: string,
})

const requestOptions = {
  challenge: string,
  timeout: { type: 'integer' },
  rpId: string,
  userVerification: string,
  challenge_token: string,
}
export const loginOptionsSchema = shape('PasskeyLoginOptions', requestOptions)
export const requestOptionsSchema = {
  ...shape('PasskeyRequestOptions', { ...requestOptions, allowCredentials: descriptors }),
  required: Object.keys(requestOptions),
}
