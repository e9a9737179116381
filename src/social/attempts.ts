import { randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { OAuthStateMismatchError, UnauthorizedError } from '../errors'
import { readCredential } from '../guards/credentials'
import { askedLocale } from '../http/locale'
import { verifyAccessToken } from '../session/access-token'
import { isAccountDigest } from '../session/account-digest'
import type { Destination } from '../session/destination'
import { callbackAnswer } from './callback-answer'
import { isPostState } from './post-states'
import { deniedBy } from './provider-denial'
import { sameText } from './same-text'
import { type Attempt, type Intent, parallelAttempts, readAttempts, writeAttempts } from './state-cookie'

const longestState = 512

/** Starts an attempt beside the ones still open in this browser; the oldest gives way to a sixth. */
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
 * Returns the attempt a callback belongs to, and marks its state as used: no second request can take it. Looks at `error`
 * before `state`. Either refusal clears the cookie of this browser and reaches no provider. Only a `state` that matched is marked:
 * a request that matches nothing must not write anything.
 * @throws OAuthProviderDeniedError, OAuthStateMismatchError
 */
export async function takeAttempt(ctx: AuthContext, req: Request, res: Response, provider: string): Promise<Attempt> {
  const attempts = readAttempts(ctx, req)
  const attempt = findAttempt(ctx, req, provider)
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

/** The attempt of this browser that the `state` of a callback names; null: none. Marks nothing. */
export function findAttempt(ctx: AuthContext, req: Request, provider: string): Attempt | null {
  const answer = callbackAnswer(ctx, req, provider)
  const state = answer.value('state', longestState)
  if (answer.mustBePosted && !isPostState(ctx, req, provider, state)) return null
  return readAttempts(ctx, req).find((attempt) => attempt.provider === provider && sameText(attempt.random, state)) ?? null
}

/**
 * An attempt of a signed-in person names its account: it ends with a change of what lets people in there, and in a browser where
 * somebody else is signed in by now. Seen again under the user's lock; here it saves the provider a call, and its code.
 */
async function isStillMeant(ctx: AuthContext, req: Request, attempt: Attempt): Promise<boolean> {
  if (attempt.purpose === 'login') return true
  const signedIn = signedInAs(ctx, req)
  if (signedIn !== null && signedIn !== attempt.userId) return false
  const user = await ctx.store.users.find(attempt.userId)
  return user !== null && isAccountDigest(ctx.keys.state, user, attempt.digest)
}

/** Null also for a token that has expired on the way: the callback is reached without one where delivery is bearer. */
export function signedInAs(ctx: AuthContext, req: Request): string | null {
  try {
    const credential = readCredential(ctx, req)
    return credential && verifyAccessToken(ctx, credential.token).sub
  } catch (error) {
    if (error instanceof UnauthorizedError) return null
    throw error
  }
}

/** For a logout: the next person at this browser finishes no login that was begun before. */
export function endOwnAttempts(ctx: AuthContext, req: Request, res: Response): void {
  if (readAttempts(ctx, req).length > 0) writeAttempts(ctx, res, [])
}

function epochSeconds(ctx: AuthContext): number {
  return Math.floor(ctx.now().getTime() / 1000)
}
