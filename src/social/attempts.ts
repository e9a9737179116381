import { randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { constantTimeEqual } from '../core/constant-time-equal'
import { OAuthStateMismatchError, UnauthorizedError } from '../core/errors'
import { askedLocale } from '../http/locale'
import { verifyAccessToken } from '../sessions/access-token'
import { isAccountDigest } from '../sessions/account-digest'
import { readCredential } from '../sessions/credentials'
import type { Destination } from '../sessions/destination'
import { callbackAnswer } from './callback-answer'
import { isPostState } from './post-states'
import { deniedBy } from './provider-denial'
import { type Attempt, type Intent, parallelAttempts, readAttempts, writeAttempts } from './state-cookie'

const longestState = 512

/**
 * Starts an attempt. An attempt is one browser tab on its way to a provider and back. If the browser has five open attempts, the function
 * removes the oldest.
 */
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
 * Returns the attempt of a callback, and marks its state as used, so that no second request can use it. Checks `error` before `state`. Each
 * refusal clears the cookie of this browser, and makes no call to the provider. The function marks only a `state` that matched, because an
 * unknown request must not write to the database.
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

/** Returns this browser's attempt with the callback's `state`. Null: no attempt matches. Does not mark the state as used. */
export function findAttempt(ctx: AuthContext, req: Request, provider: string): Attempt | null {
  return matching(ctx, req, provider, readAttempts(ctx, req))
}

function matching(ctx: AuthContext, req: Request, provider: string, attempts: readonly Attempt[]): Attempt | null {
  const answer = callbackAnswer(ctx, req, provider)
  const state = answer.value('state', longestState)
  if (answer.mustBePosted && !isPostState(ctx, req, provider, state)) return null
  return attempts.find((attempt) => attempt.provider === provider && constantTimeEqual(attempt.random, state)) ?? null
}

/**
 * Returns false if a signed-in person's attempt is no longer valid. The attempt is for one account. The attempt becomes invalid if the
 * account's credentials change, or another person signs in to this browser. A later check under the user's lock decides again. This early
 * check saves a call to the provider, and leaves the code unused.
 */
async function isStillMeant(ctx: AuthContext, req: Request, attempt: Attempt): Promise<boolean> {
  if (attempt.purpose === 'login') return true
  const signedIn = signedInAs(ctx, req)
  if (signedIn !== null && signedIn !== attempt.userId) return false
  const user = await ctx.store.users.find(attempt.userId)
  return user !== null && isAccountDigest(ctx.keys.state, user, attempt.digest)
}

/**
 * Returns the account id of the request's access token. Null: the request has no valid access token. For example, the token has expired
 * since the start of the attempt. In delivery `bearer` (tokens in the body), a callback never has a token.
 */
export function signedInAs(ctx: AuthContext, req: Request): string | null {
  try {
    const credential = readCredential(ctx, req)
    return credential && verifyAccessToken(ctx, credential.token).sub
  } catch (error) {
    if (error instanceof UnauthorizedError) return null
    throw error
  }
}

/** Removes the open attempts of this browser at a logout. So the next person in this browser cannot finish an earlier login. */
export function endOwnAttempts(ctx: AuthContext, req: Request, res: Response): void {
  if (readAttempts(ctx, req).length > 0) writeAttempts(ctx, res, [])
}

function epochSeconds(ctx: AuthContext): number {
  return Math.floor(ctx.now().getTime() / 1000)
}
