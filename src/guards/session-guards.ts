import type { Request, RequestHandler } from 'express'
import { isSecondFactor } from '../core/amr'
import {
  AccountInactiveError,
  AppError,
  ConfigurationError,
  InvalidTokenError,
  ServiceUnavailableError,
  UnauthorizedError,
} from '../core/errors'
import { refuseRequest } from '../http/forgotten-call'
import { findRequestAuth, rememberAuth } from '../sessions/current-auth'
import { isAlive } from '../sessions/find-session'
import { ageOf, refuseStale, refuseUnnamed, type SessionOfRequest, sinceFactor } from '../sessions/reauthentication/fresh-session'
import { findNamedSession } from '../sessions/reauthentication/request-session'
import { isSuperseded, refuseEarlierAccount } from '../sessions/superseded-token'
import type { UserRecord } from '../store/auth-store'
import { toPublicUser } from '../store/user-records'
import { type BaseGuards, type Guards, guarding } from './guards'
import type { GuardContext } from './refusing'

export function withSessionGuards(ctx: GuardContext, guards: BaseGuards): Guards {
  return {
    ...guards,
    requireLiveSession: (...given: []) => {
      refuseRequest('guards.requireLiveSession', given)
      if (!ctx.store?.sessions)
        throw new ConfigurationError(
          'requireLiveSession() reads the session table: pass a `store` that has `sessions`; createKnexStore({ knex }) does.',
        )
      return behindAuth(ctx, guards, async () => undefined)
    },
    requireFresh: (...given: [{ maxAgeSeconds?: number }?]) => {
      refuseRequest('guards.requireFresh', given)
      const maxAgeSeconds = maxAgeOf(ctx, given[0])
      if (!ctx.store) throw new ConfigurationError('requireFresh() reads the user row: pass `store` to createGuards().')
      return behindAuth(ctx, guards, (found, req) => refuseStale(ctx, isByFactor(req) ? sinceFactor(ctx, found) : found, maxAgeSeconds))
    },
  }
}

function maxAgeOf({ settings }: GuardContext, { maxAgeSeconds }: { maxAgeSeconds?: number } = {}): number {
  if (maxAgeSeconds === undefined) return settings.freshSessionSeconds
  if (Number.isSafeInteger(maxAgeSeconds) && maxAgeSeconds >= 1) return maxAgeSeconds
  throw new ConfigurationError('requireFresh: maxAgeSeconds must be a whole number of seconds, at least 1.')
}

/** Uses the session of `requireSession`. Otherwise authenticates like `requireAuth`, even after one: it can belong to another router. */
function behindAuth(
  ctx: GuardContext,
  guards: BaseGuards,
  judge: (found: SessionOfRequest, req: Request) => Promise<void>,
): RequestHandler {
  const authenticate = guards.requireAuth()
  const check = guarding(ctx, async (req) => {
    const found = await findAlive(ctx, req)
    await judge(found, req)
    remember(req, found.user)
  })
  return (req, res, next) => {
    const auth = findRequestAuth(req)
    if (auth?.session && auth.claims === null) check(req, res, next)
    else authenticate(req, res, (error?: unknown) => (error ? next(error) : check(req, res, next)))
  }
}

/** `requireFresh` then also requires that the person authenticated after the factor was added (`sinceFactor`). */
function isByFactor(req: Request): boolean {
  const auth = findRequestAuth(req)
  return (auth?.claims?.amr ?? auth?.session?.amr ?? []).some(isSecondFactor)
}

function remember(req: Request, user: UserRecord): void {
  const auth = findRequestAuth(req)
  if (auth) rememberAuth(req, { ...auth, user: toPublicUser(user) })
}

/** One query. An error of the adapter becomes a 503, so that the client tries again. */
async function findAlive(ctx: GuardContext, req: Request): Promise<SessionOfRequest> {
  try {
    return await findSessionAndUser(ctx, req)
  } catch (error) {
    throw error instanceof AppError ? error : new ServiceUnavailableError({ cause: error })
  }
}

async function findSessionAndUser(ctx: GuardContext, req: Request): Promise<SessionOfRequest> {
  const claims = findRequestAuth(req)?.claims ?? null
  const { users, sessions } = ctx.store ?? {}
  if (!sessions) {
    const user = requireActive(await users?.find(claims?.sub ?? ''))
    if (claims) refuseEarlierAccount(claims, user)
    if (!users || !claims || isSuperseded({ store: { users } }, claims, user)) throw new InvalidTokenError({ reason: 'superseded' })
    return { session: null, user, ageSeconds: ageOf(ctx.now(), claims, null) }
  }
  const found = await findNamedSession({ ...ctx, sessions }, req, claims, req.body)
  if (found) requireActive(found.user)
  else {
    const user = requireActive(await users?.find(claims?.sub ?? ''))
    if (claims) refuseEarlierAccount(claims, user)
    await refuseUnnamed(ctx, claims, user)
  }
  if (!found || !isAlive(found.session, ctx.now())) throw new InvalidTokenError({ reason: 'session_over' })
  return { session: found.session, user: found.user, ageSeconds: ageOf(ctx.now(), claims, found) }
}

function requireActive(user: UserRecord | null | undefined): UserRecord {
  if (!user) throw new UnauthorizedError({ reason: 'account_gone' })
  if (!user.isActive) throw new AccountInactiveError()
  return user
}
