import { createHmac, randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { OAuthStateMismatchError, UnauthorizedError } from '../core/errors'
import type { KeyList } from '../core/keys'
import { constantTimeEqual } from '../core/opaque-token'
import { askedLocale } from '../http/locale'
import { verifyAccessToken } from '../sessions/access-token'
import { accountDigest, isAccountDigest } from '../sessions/challenge'
import { readProofCookie, setProofCookie } from '../sessions/cookies'
import { readCredential } from '../sessions/current-auth'
import type { Destination } from '../sessions/destination'
import { requestSessionOf } from '../sessions/reauthentication/fresh-session'
import type { Irreversibility } from '../sessions/reauthentication/irreversible-change'
import { findRequestSession } from '../sessions/reauthentication/request-session'
import { type TicketOwner, ticketSeconds } from '../sessions/tickets'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { callbackAnswer, deniedBy } from './callback-answer'
import {
  type Attempt,
  attemptKeyOf,
  type BoundAttempt,
  type Intent,
  isPostState,
  parallelAttempts,
  readAttempts,
  writeAttempts,
} from './state-cookie'

const longestState = 512

/** An attempt is one browser tab on its way to a provider and back. The oldest of more than five is removed. */
export function beginAttempt(
  ctx: AuthContext,
  req: Request,
  res: Response,
  provider: string,
  { destination, ...intent }: Intent & { destination: Destination | null },
): Attempt {
  const attempt: Attempt = {
    ...intent,
    provider,
    random: randomBytes(32).toString('base64url'),
    expiresAt: epochSeconds(ctx) + ctx.settings.oauthStateTtlSeconds,
    secret: 0,
    locale: askedLocale(ctx, req),
    destination,
  }
  writeAttempts(ctx, res, [...readAttempts(ctx, req), attempt].slice(-parallelAttempts))
  return attempt
}

/**
 * Marks the state as used, so that no second request can use it. Checks `error` before `state`. A refusal clears the cookie and calls no
 * provider. Only a `state` that matched is written: an unknown request must not write.
 * @throws OAuthProviderDeniedError, OAuthStateMismatchError
 */
export async function consumeAttempt(ctx: AuthContext, req: Request, res: Response, provider: string): Promise<Attempt> {
  const attempts = readAttempts(ctx, req)
  const attempt = matching(ctx, req, provider, attempts)
  const denial = deniedBy(ctx, req, { provider, isOurs: attempt !== null })
  if (denial) {
    writeAttempts(ctx, res, [])
    throw denial
  }
  if (!attempt || !(await ctx.stateMarkers.claim(attempt.random, attempt.expiresAt)) || !(await isStillMeant(ctx, req, attempt))) {
    writeAttempts(ctx, res, [])
    throw new OAuthStateMismatchError()
  }
  writeAttempts(
    ctx,
    res,
    attempts.filter(({ random }) => random !== attempt.random),
  )
  return attempt
}

/** Does not mark the state as used. */
export function findAttempt(ctx: AuthContext, req: Request, provider: string): Attempt | null {
  return matching(ctx, req, provider, readAttempts(ctx, req))
}

function matching(ctx: AuthContext, req: Request, provider: string, attempts: readonly Attempt[]): Attempt | null {
  const answer = callbackAnswer(ctx, req, provider)
  const state = answer.value('state', longestState)
  if (answer.mustBePosted && !isPostState(ctx, req, provider, state)) return null
  return attempts.find((attempt) => attempt.provider === provider && constantTimeEqual(attempt.random, state)) ?? null
}

/** An early check; the user's lock decides again. It saves a call to the provider, and leaves the code unused. */
async function isStillMeant(ctx: AuthContext, req: Request, attempt: Attempt): Promise<boolean> {
  if (attempt.purpose === 'login') return true
  const signedIn = signedInAs(ctx, req)
  if (signedIn !== null && signedIn !== attempt.userId) return false
  const user = await ctx.store.users.find(attempt.userId)
  return user !== null && isAccountDigest(ctx.keys.state, user, attempt.digest)
}

/** Null without a valid access token: it may have expired since the start. In delivery `bearer`, a callback never has one. */
function signedInAs(ctx: AuthContext, req: Request): string | null {
  try {
    const credential = readCredential(ctx, req)
    return credential && verifyAccessToken(ctx, credential.token).sub
  } catch (error) {
    if (error instanceof UnauthorizedError) return null
    throw error
  }
}

/** At a logout: the next person in this browser cannot finish an earlier login. */
export function endOwnAttempts(ctx: AuthContext, req: Request, res: Response): void {
  if (readAttempts(ctx, req).length > 0) writeAttempts(ctx, res, [])
}

function epochSeconds(ctx: AuthContext): number {
  return Math.floor(ctx.now().getTime() / 1000)
}

const cookieName = 'oauth_binding'

interface BoundIntent extends Pick<BoundAttempt, 'provider' | 'purpose' | 'destination'> {
  readonly user: UserRecord
  readonly session: SessionRecord | null
  readonly isFinal?: Irreversibility
}

/**
 * An attacker on a subdomain can plant an attempt and a session cookie, so neither of them proves who began. With `cookieSecure`, sets a cookie
 * that a subdomain cannot plant. Without it, the callback treats the browser as not signed in.
 */
export function beginBoundAttempt(
  ctx: AuthContext,
  req: Request,
  res: Response,
  { provider, purpose, user, session, isFinal = false, destination }: BoundIntent,
): Attempt {
  const { tokenDelivery, cookieSecure, oauthStateTtlSeconds } = ctx.settings
  const sessionId = session?.id ?? null
  if (tokenDelivery !== 'bearer' && cookieSecure)
    setProofCookie(ctx, res, cookieName, sessionId ?? user.id, oauthStateTtlSeconds + ticketSeconds)
  const startedAt = Math.floor(ctx.now().getTime() / 1000)
  return beginAttempt(ctx, req, res, provider, {
    purpose,
    userId: user.id,
    sessionId,
    digest: accountDigest(ctx.keys.state[0], user),
    startedAt,
    isFinal,
    destination,
  })
}

/** By the cookies of the browser: always false in delivery `bearer`. @throws OAuthStateMismatchError if another person is signed in */
export async function isInSameSession(ctx: AuthContext, req: Request, attempt: BoundAttempt): Promise<boolean> {
  const { userId, sessionId } = attempt
  if (ctx.settings.tokenDelivery === 'bearer') return false
  if (!ctx.store.sessions) return signedInAs(ctx, req) === userId && hasBinding(ctx, req, userId)
  const session = await findRequestSession(ctx, req)
  if (session && session.userId !== userId) throw new OAuthStateMismatchError()
  return session !== null && session.id === sessionId && hasBinding(ctx, req, session.id)
}

/** Null: a cookie authenticates the request, but this browser began no attempt. An attacker may have planted the cookie. */
export function ticketOwner(ctx: AuthContext, req: Request): TicketOwner | null {
  const { user, session } = requestSessionOf(req)
  const owner = { userId: user.id, sessionId: session?.id ?? null }
  return readCredential(ctx, req)?.from === 'header' || hasBinding(ctx, req, owner.sessionId ?? owner.userId) ? owner : null
}

function hasBinding(ctx: AuthContext, req: Request, value: string): boolean {
  return !ctx.settings.cookieSecure || readProofCookie(ctx, req, cookieName) === value
}

/** Derived from an attempt's random value. The server stores none, and the browser never gets the verifier (RFC 7636 section 4.1). */
export interface AttemptSecrets {
  state: string
  codeVerifier: string
  nonce: string
}

/** The same attempt always has the same secrets. */
export function secretsOf({ keys }: AuthContext, attempt: Attempt): AttemptSecrets {
  const { random } = attempt
  const derive = (derived: KeyList) => createHmac('sha256', attemptKeyOf(derived, attempt)).update(random).digest('base64url')
  return { state: random, codeVerifier: derive(keys.pkce), nonce: derive(keys.nonce) }
}

const browserCookieName = 'oauth_browser'

/** Another subdomain can plant an attempt, but not this cookie. Null without `cookieSecure`, or without cookies of a login. */
export function browserOf(ctx: AuthContext, req: Request): string | null {
  const { tokenDelivery, cookieSecure } = ctx.settings
  if (tokenDelivery === 'bearer' || !cookieSecure) return null
  return readProofCookie(ctx, req, browserCookieName) ?? randomBytes(16).toString('base64url')
}

/** For as long as an attempt can last. */
export function markBrowser(ctx: AuthContext, res: Response, id: string | null): void {
  if (id !== null) setProofCookie(ctx, res, browserCookieName, id, ctx.settings.oauthStateTtlSeconds)
}

/** Without `cookieSecure`, every browser counts as the same. */
export function isOfThisBrowser(ctx: AuthContext, req: Request, attempt: Attempt): boolean {
  const browser = attempt.purpose === 'login' ? attempt.browser : null
  return !ctx.settings.cookieSecure || (browser !== null && readProofCookie(ctx, req, browserCookieName) === browser)
}
