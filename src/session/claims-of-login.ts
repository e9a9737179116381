import type { AuthMethod } from '../amr'
import { askForClaims } from '../claims/ask-for-claims'
import { type HostClaims, noClaims } from '../claims/host-claims'
import { type AuthContext, unitOfWork } from '../context'
import { ServiceUnavailableError, UnauthorizedError } from '../errors'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { toPublicUser } from '../store/public-user'
import { accountDigest, isAccountDigest } from './account-digest'
import { asStored, finishLogin, type Login, type LoginChallenge, type OpenedSession, type OpenSession } from './finish-login'
import { needsSecondFactor } from './needs-second-factor'

/**
 * Asks the host for its claims before the transaction of a login, so that a failure uses no token or code up. Returns the login with the
 * claims. It returns the login unchanged if no access token will be signed: without `accessTokenClaims`, for a server-side session, and
 * before a second factor.
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
 * Asks the host for the claims of a session that continues, before its transaction. It reads the user's row only if there is a hook to call.
 * @throws ServiceUnavailableError
 */
export async function claimsToGoOn(ctx: AuthContext, { userId, session, amr }: GoingOn): Promise<HostClaims> {
  if (!ctx.accessTokenClaims || session?.kind === 'session') return noClaims
  const user = await ctx.store.users.find(userId)
  return user ? askForClaims(ctx, toPublicUser(user), amr) : noClaims // the transaction rejects a deleted account
}

/**
 * Returns the claims to sign. It never leaves out those of the host, because resources may use them to decide what a person may do.
 * @throws ServiceUnavailableError when the host was not asked, because the account lost its second factor at this moment
 */
export function claimsToSign({ accessTokenClaims }: AuthContext, { claims }: Login): HostClaims {
  if (accessTokenClaims && !claims) throw new ServiceUnavailableError({ cause: new Error('The claims of this login were not asked for.') })
  return claims ?? noClaims
}

/** A login whose session starts after the transaction that created, activated or reset the account. */
export interface PostponedLogin {
  readonly kind: 'postponed'
  readonly userId: string
  /** The row as the transaction left it. */
  readonly user: UserRecord
  readonly login: Login
}

/**
 * Like `finishLogin`, for transactions that create, activate or reset an account. The host is asked for claims after such a transaction,
 * about the new row. So a login that still needs claims is postponed, and `openPostponed` finishes it.
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
 * Opens the session of a postponed login, in a transaction of its own. Returns every other result as it is. Call it after the transaction,
 * and after its changes were announced: if the host's function fails, the account stays, and the person logs in again.
 * @throws ServiceUnavailableError; UnauthorizedError when the account has changed meanwhile
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
  return unitOfWork(ctx, async (ctx) => {
    const user = await ctx.store.users.lock(seen.id)
    if (!user?.isActive || !isAccountDigest(ctx.keys.state, user, digest)) throw new UnauthorizedError()
    return finishLogin(ctx, user, { ...login, claims }, open)
  })
}
