import { randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { OAuthProviderDeniedError, OAuthStateMismatchError } from '../errors'
import { askedLocale } from '../http/locale'
import { queryParameter, queryValues } from './query-parameter'
import { type Attempt, parallelAttempts, readAttempts, sameText, writeAttempts } from './state-cookie'

const longestState = 512

/** Starts an attempt beside the ones still open in this browser; the oldest gives way to a sixth. */
export function beginAttempt(ctx: AuthContext, req: Request, res: Response, provider: string): Attempt {
  const attempt: Attempt = {
    purpose: 'login',
    provider,
    random: randomBytes(32).toString('base64url'),
    expiresAt: epochSeconds(ctx) + ctx.settings.oauthStateTtlSeconds,
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
  if (!attempt || !(await spend(ctx, attempt))) {
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
