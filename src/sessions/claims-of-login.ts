import { type AuthContext, transaction } from '../context'
import type { AuthMethod } from '../core/amr'
import { ServiceUnavailableError, UnauthorizedError } from '../core/errors'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { toPublicUser } from '../store/public-user'
import { accountDigest, isAccountDigest } from './account-digest'
import { askForClaims } from './ask-for-claims'
import { asStored, finishLogin, type LoginChallenge, type OpenedSession, type OpenSession } from './finish-login'
import { type HostClaims, noClaims } from './host-claims'
import type { Login } from './login'
import { needsSecondFactor } from './needs-second-factor'

/**
 * Asks the host for its claims before the transaction of a login. So a failure of the host does not use up a token or a code. Returns the
 * login with the claims. Returns the login unchanged if it needs no claims: without `accessTokenClaims`, for a server-side session, and if
 * a second factor is still missing.
 * @throws ServiceUnavailableError
 */
export async function withClaims(ctx: AuthContext, user: UserRecord, login: Login, open: OpenSession<OpenedSession>): Promise<Login> {
  return needsClaims(ctx, user, login, open) ? { ...login, claims: await askForClaims(ctx, toPublicUser(user), login.amr) } : login
}

function needsClaims(ctx: AuthContext, user: UserRecord, login: Login, open: OpenSession<OpenedSession>): boolean {
  return ctx.accessTokenClaims !== null && open.takesClaims === true && !login.claims && !needsSecondFactor(ctx, user, login)
}

/** A session that continues with a new access token. */
interface GoingOn {
  readonly userId: string
  /** Null: the store keeps no sessions. */
  readonly session: Pick<SessionRecord, 'kind'> | null
  readonly amr: readonly AuthMethod[]
}

/**
 * Asks the host for the claims of a session that continues. Call it before the transaction. The function reads the user's row only if the
 * host has a hook.
 * @throws ServiceUnavailableError
 */
export async function claimsToGoOn(ctx: AuthContext, { userId, session, amr }: GoingOn): Promise<HostClaims> {
  if (!ctx.accessTokenClaims || session?.kind === 'session') return noClaims
  const user = await ctx.store.users.find(userId)
  return user ? askForClaims(ctx, toPublicUser(user), amr) : noClaims // the transaction rejects a deleted account
}

/**
 * Returns the claims to sign. Never leaves out the host's claims, because other services can use them to decide what a person may do.
 * @throws ServiceUnavailableError if the host's function was not called for this login. This happens if the account lost its second factor
 *   after `withClaims`
 */
export function claimsToSign({ accessTokenClaims }: AuthContext, { claims }: Login): HostClaims {
  if (accessTokenClaims && !claims)
    throw new ServiceUnavailableError({ cause: new Error('accessTokenClaims was not called for this login.') })
  return claims ?? noClaims
}

/** A login whose session starts after the transaction that created, activated or reset the account. */
export interface PostponedLogin {
  readonly kind: 'postponed'
  readonly userId: string
  /** The row after the transaction. */
  readonly user: UserRecord
  readonly login: Login
}

/**
 * Finishes a login like `finishLogin`, in a transaction that creates, activates or resets an account. doorward asks the host for claims
 * after that transaction, because the claims are about the new row. If the login still needs claims, the function postpones it, and
 * `openPostponed` finishes it.
 */
export async function finishOrPostpone<Session extends OpenedSession>(
  ctx: AuthContext,
  user: UserRecord,
  login: Login,
  open: OpenSession<Session>,
): Promise<Session | LoginChallenge | PostponedLogin> {
  if (!needsClaims(ctx, user, login, open)) return finishLogin(ctx, user, login, open)
  return { kind: 'postponed', userId: user.id, user: await asStored(ctx, user), login }
}

/**
 * Opens the session of a postponed login, in a new transaction. Returns every other result unchanged. Call it after the transaction of
 * `finishOrPostpone` has committed and its events were emitted. If the host's function fails, the account stays, and the person can log in
 * again.
 * @throws ServiceUnavailableError; UnauthorizedError when the account has changed since the transaction of `finishOrPostpone`
 */
export async function openPostponed<Session extends OpenedSession>(
  ctx: AuthContext,
  ended: Session | LoginChallenge | PostponedLogin,
  open: OpenSession<Session>,
): Promise<Session | LoginChallenge> {
  if (ended.kind !== 'postponed') return ended
  const { user: seen, login } = ended
  const claims = await askForClaims(ctx, toPublicUser(seen), login.amr)
  const digest = accountDigest(ctx.keys.state[0], seen)
  return transaction(ctx, async (ctx) => {
    const user = await ctx.store.users.lock(seen.id)
    if (!user?.isActive || !isAccountDigest(ctx.keys.state, user, digest)) throw new UnauthorizedError()
    return finishLogin(ctx, user, { ...login, claims }, open)
  })
}
