import { randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { OAuthProviderDeniedError, OAuthStateMismatchError, UnauthorizedError } from '../errors'
import { readCredential } from '../guards/credentials'
import { askedLocale } from '../http/locale'
import { verifyAccessToken } from '../session/access-token'
import { isAccountDigest } from '../session/account-digest'
import { queryParameter, queryValues } from './query-parameter'
import { type Attempt, type Intent, parallelAttempts, readAttempts, sameText, writeAttempts } from './state-cookie'

const longestState = 512

/** Starts an attempt beside the ones still open in this browser; the oldest gives way to a sixth. */
export function beginAttempt(ctx: AuthContext, req: Request, res: Response, provider: string, intent: Intent): Attempt {
  const attempt: Attempt = {
    ...intent,
    provider,
    random: randomBytes(32).toString('base64url'),
    expiresAt: epochSeconds(ctx) + ctx.settings.oauthStateTtlSeconds,
    secret: 0,
    locale: askedLocale(req),
  }
  writeAttempts(ctx, res, [...readAttempts(ctx, req), attempt].slice(-parallelAttempts))
  return attempt
}

/**
 * The attempt a callback belongs to, spent: no second request can take it. Evaluated in the contract's order, `error`
 * before `state`; either refusal ends every attempt of this browser and reaches no provider.
 * @throws OAuthProviderDeniedError, OAuthStateMismatchError
 */
export async function takeAttempt(ctx: AuthContext, req: Request, res: Response, provider: string): Promise<Attempt> {
  const attempts = readAttempts(ctx, req)
  if (isDenied(req)) {
    await endAttempts(ctx, res, attempts)
    throw new OAuthProviderDeniedError()
  }
  const state = queryParameter(req, 'state', longestState)
  const attempt = attempts.find((candidate) => candidate.provider === provider && sameText(candidate.random, state))
  if (!attempt || !(await spend(ctx, attempt)) || !(await isStillMeant(ctx, req, attempt))) {
    await endAttempts(ctx, res, attempts)
    throw new OAuthStateMismatchError()
  }
  writeAttempts(
    ctx,
    res,
    attempts.filter((other) => other !== attempt),
  )
  return attempt
}

/** Any `error` is a denial, however often it comes; an empty one counts as omitted (RFC 6749 section 3.1). */
function isDenied(req: Request): boolean {
  return queryValues(req, 'error').some((error) => error !== '')
}

/**
 * A link attempt names its account: it ends with a change of what lets people in there, and in a browser where somebody
 * else is signed in by now. Seen again under the user's lock; here it saves the provider a call, and its code.
 */
async function isStillMeant(ctx: AuthContext, req: Request, attempt: Attempt): Promise<boolean> {
  if (attempt.purpose === 'login') return true
  const signedIn = signedInAs(ctx, req)
  if (signedIn !== null && signedIn !== attempt.userId) return false
  const user = await ctx.store.users.find(attempt.userId)
  return user !== null && isAccountDigest(ctx.keys.state, user, attempt.digest)
}

/** Null also for a token that has expired on the way: the callback is reached without one where delivery is bearer. */
function signedInAs(ctx: AuthContext, req: Request): string | null {
  try {
    const credential = readCredential(ctx.settings, req)
    return credential && verifyAccessToken(ctx, credential.token).sub
  } catch (error) {
    if (error instanceof UnauthorizedError) return null
    throw error
  }
}

/** For a logout: whoever sits down at this browser next finishes nothing that was begun before. */
export async function endOwnAttempts(ctx: AuthContext, req: Request, res: Response): Promise<void> {
  const attempts = readAttempts(ctx, req)
  if (attempts.length > 0) await endAttempts(ctx, res, attempts)
}

async function endAttempts(ctx: AuthContext, res: Response, attempts: readonly Attempt[]): Promise<void> {
  writeAttempts(ctx, res, [])
  await Promise.all(attempts.map((attempt) => spend(ctx, attempt)))
}

/** A kept cookie can be sent again: what makes a state single use is remembered here, until it would have expired anyway. */
async function spend(ctx: AuthContext, attempt: Attempt): Promise<boolean> {
  const seconds = Math.max(1, attempt.expiresAt - epochSeconds(ctx))
  const { count } = await ctx.stateMarkers.increment(`oauth-state:${attempt.random}`, seconds, 1)
  return count === 1
}

function epochSeconds(ctx: AuthContext): number {
  return Math.floor(ctx.now().getTime() / 1000)
}
