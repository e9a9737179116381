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
 * Asks the host for its claims before the transaction of a login, so that a failure uses nothing up. Returns the login with them; as it is
 * where nothing signs an access token: without `accessTokenClaims`, for a server-side session, and before a second factor.
 * @throws ServiceUnavailableError
 */
export async function withClaims(ctx: AuthContext, user: UserRecord, login: Login, open: OpenSession<OpenedSession>): Promise<Login> {
  return needsClaims(ctx, user, login, open) ? { ...login, claims: await askForClaims(ctx, toPublicUser(user), login.amr) } : login
}

function needsClaims(ctx: AuthContext, user: UserRecord, login: Login, open: OpenSession<OpenedSession>): boolean {
  return ctx.accessTokenClaims !== null && open.takesClaims === true && !login.claims && !needsSecondFactor(ctx, user, login)
}

/** A session that goes on with a new access token. */
interface GoingOn {
  readonly userId: string
  /** Null: the store keeps no sessions. */
  readonly session: Pick<SessionRecord, 'kind'> | null
  readonly amr: readonly AuthMethod[]
}

/**
 * Asks the host for the claims of a session that goes on, before its transaction. Reads the user's row, unless there is nothing to ask.
 * @throws ServiceUnavailableError
 */
export async function claimsToGoOn(ctx: AuthContext, { userId, session, amr }: GoingOn): Promise<HostClaims> {
  if (!ctx.accessTokenClaims || session?.kind === 'session') return noClaims
  const user = await ctx.store.users.find(userId)
  return user ? askForClaims(ctx, toPublicUser(user), amr) : noClaims // the transaction refuses an account that is gone
}

/**
 * The claims to sign. Never without those of the host: they may be what a resource tells people apart by.
 * @throws ServiceUnavailableError where the host was not asked, because the account got rid of its second factor in this very moment
 */
export function claimsToSign({ accessTokenClaims }: AuthContext, { claims }: Login): HostClaims {
  if (accessTokenClaims && !claims) throw new ServiceUnavailableError({ cause: new Error('The claims of this login were not asked for.') })
  return claims ?? noClaims
}

/** A login whose session begins after the transaction that made, activated or reset the account. */
export interface PostponedLogin {
  readonly kind: 'postponed'
  readonly userId: string
  /** As the transaction left it. */
  readonly user: UserRecord
  readonly login: Login
}

/**
 * `finishLogin` for transactions that make, activate or reset an account. The host is asked about the account as they leave it, and not
 * inside them, so a login that needs claims and has none is postponed: `openPostponed` ends it.
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
 * Opens the session of a postponed login, in a transaction of its own; returns every other result as it is. Call it after the transaction
 * and after what it changed was announced: where the host's function fails, the account stays, and the person signs in again.
 * @throws ServiceUnavailableError; UnauthorizedError where the account changed meanwhile
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
