import { announceChange, type LeaveUndoPoint } from '../accounts/undo/announce-change'
import { type AuthContext, transaction } from '../context'
import type { AuthMethod } from '../core/amr'
import { MfaCodeInvalidError, MfaNotEnrolledError, UnauthorizedError } from '../core/errors'
import type { Locale } from '../http/locale'
import { type AccessTokenClaims, instantOfAuthTime } from '../sessions/access-token'
import { claimsToGoOn, type HostClaims, noClaims } from '../sessions/ask-for-claims'
import { endOtherSessions } from '../sessions/log-out'
import type { AnyLoginResult, LoginClient } from '../sessions/login'
import { holdSession, reauthenticationRequired } from '../sessions/reauthentication/fresh-session'
import type { Irreversibility } from '../sessions/reauthentication/irreversible-change'
import { usableAt } from '../sessions/reauthentication/methods'
import { addMethods, keepServerSession, keepStateless, keepTokens, trustedStateless } from '../sessions/reissue-tokens'
import type { ReissuedSession } from '../sessions/send-reissued-tokens'
import { finishLogin, startLogin } from '../sessions/start-login'
import { refuseSupersededToken } from '../sessions/superseded-token'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { distrust } from '../trusted-devices/distrust'
import { acceptTotpCode, recoveryCodesOf, stepOfCode } from './accept-code'
import { guardedConfirmation } from './code-limits'
import { findReplacement, finishEnrolment, irreversibilityOfFirst, type Replacement } from './enroll'
import { openSecret, sealPlain } from './secret-box'

export interface Confirmation {
  userId: string
  code: string
  /** Of the session. The confirmation adds `otp`. */
  amr?: readonly AuthMethod[] | undefined
  /** Revokes every session of the account, because those began without the factor. Default true. */
  revokeSessions?: boolean | undefined
  /** Language of the notices. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * Every login then asks for the factor. Removes the replaced factor and its recovery codes. Revokes every challenge, and by default every
 * session. The new session is not fresh, because a new factor confirms nothing yet.
 * @throws MfaNotEnrolledError (nothing is pending), MfaCodeInvalidError, MfaThrottledError, UnauthorizedError; the errors of `finishLogin`,
 * with the factor active all the same
 */
export async function confirmTotp(
  ctx: AuthContext,
  { userId, code, amr = [], revokeSessions = true, locale }: Confirmation,
  client: LoginClient,
): Promise<AnyLoginResult> {
  const methods = [...new Set<AuthMethod>([...amr, 'otp'])]
  const begun = await confirm(ctx, { userId, code, locale }, async (ctx, { activate }) => {
    const user = await activate()
    await ctx.store.userTokens.consumeAllForUser(userId, ctx.now(), 'MFA_ENROLMENT')
    await (revokeSessions ? endOtherSessions(ctx, userId) : distrust(ctx, userId, { reason: 'account_changed' }))
    const isYoung = usableAt(ctx, ctx.now()) !== null
    return startLogin(ctx, client, user, { amr: methods, provider: null, isYoung, goesOn: true })
  })
  const result = await finishLogin(ctx, begun)
  return result
}

interface ConfirmingSession {
  /** Null if the store keeps no sessions. */
  readonly session: SessionRecord | null
  readonly claims: AccessTokenClaims
  /** The refresh token of the request. */
  readonly refreshToken: string | null
}

/**
 * Only the session that began the enrolment can confirm it, within 15 minutes. It stays and gets `otp`; others are revoked. The time of the
 * authentication stays that of the request's access token, so the session does not become fresher.
 * @throws as `confirmTotp`; InvalidTokenError (ended), ReauthenticationRequiredError (begun in another session, or too long ago)
 */
export async function confirmInSession(
  ctx: AuthContext,
  { code, locale }: Pick<Confirmation, 'code' | 'locale'>,
  { session: asked, claims, refreshToken }: ConfirmingSession,
): Promise<ReissuedSession> {
  const { sub: userId } = claims
  const claimsOf = () => claimsToGoOn(ctx, { userId, session: asked, amr: addMethods(asked, claims.amr, ['otp']) })
  const confirming = confirm(ctx, { userId, code, locale, claimsOf }, async (ctx, { pending, activate, claims: hostClaims }) => {
    refuseSupersededToken(ctx, { claims, session: asked }, pending.user)
    const session = await holdSession(ctx, asked)
    const presented = session ? null : trustedStateless(ctx, pending.user, refreshToken) // before the change, which invalidates the token
    if (!(await finishEnrolment(ctx, userId, pending.secret, session))) throw new BegunElsewhere(pending.user)
    const user = await activate()
    await endOtherSessions(ctx, userId, { sessionId: session?.id })
    const amr = addMethods(session, claims.amr, ['otp'])
    const at = claims.auth_time === undefined ? (session?.authenticatedAt ?? null) : instantOfAuthTime(claims.auth_time)
    const renewal = { amr, tokenAuthenticatedAt: at, refreshToken, claims: hostClaims }
    if (!session) return keepStateless(ctx, user, renewal, presented)
    return session.kind === 'session' ? keepServerSession(ctx, session, { amr }) : keepTokens(ctx, user, session, renewal)
  })
  return confirming.catch((error) => askToBeginAgain(ctx, error))
}

/**
 * For a login that owes the factor and began the enrolment itself. Revokes every session.
 * @param options.check runs on the locked row, before anything else
 * @throws MfaNotEnrolledError (this login began no enrolment, or a later one replaced it), MfaCodeInvalidError, MfaThrottledError
 */
export function confirmInLogin<T>(
  ctx: AuthContext,
  { userId, owner, ...given }: Pick<Confirmation, 'userId' | 'code' | 'locale'> & { owner: string },
  { check }: { check: RowCheck },
  end: (ctx: AuthContext, user: UserRecord) => Promise<T>,
): Promise<T> {
  return confirm(ctx, { userId, check, ...given }, async (ctx, { pending, activate }) => {
    if (!(await finishEnrolment(ctx, userId, pending.secret, { id: owner }, { mustOwn: true }))) throw new MfaNotEnrolledError()
    const user = await activate()
    await endOtherSessions(ctx, userId)
    return end(ctx, user)
  })
}

/** `askToBeginAgain` adds the methods after the transaction, because `methodsOf` can call a hook of the host. */
class BegunElsewhere extends Error {
  readonly user: UserRecord

  constructor(user: UserRecord) {
    super('Another session began this set-up of the second factor.')
    this.user = user
  }
}

async function askToBeginAgain(ctx: AuthContext, error: unknown): Promise<never> {
  if (!(error instanceof BegunElsewhere)) throw error
  throw await reauthenticationRequired(ctx, error.user)
}

/** @param user the locked row; null: the account is gone */
type RowCheck = (ctx: AuthContext, user: UserRecord | null) => Promise<unknown>

/** Inside the transaction, on the locked row. It calls `activate` to accept the code. */
type Ending<T> = (ctx: AuthContext, confirming: Confirming) => Promise<T>

interface Confirming {
  readonly pending: PendingFactor
  readonly activate: () => Promise<UserRecord>
  /** The result of `claimsOf`. */
  readonly claims: HostClaims
}

async function confirm<T>(
  ctx: AuthContext,
  {
    userId,
    code,
    locale,
    claimsOf = async () => noClaims,
    check = async () => undefined,
  }: Pick<Confirmation, 'userId' | 'code' | 'locale'> & { claimsOf?: () => Promise<HostClaims>; check?: RowCheck },
  end: Ending<T>,
): Promise<T> {
  const inUnit = async (leaveUndoPoint: LeaveUndoPoint) => {
    const claims = await claimsOf()
    return transaction(ctx, async (ctx) => {
      const pending = await lockPendingFactor(ctx, userId, check)
      const activate = async () => {
        const after = await activateFactor(ctx, pending, code)
        const { user, replacement, isFinal } = pending
        await leaveUndoPoint(ctx, { user, isFinal, ...(replacement && { topic: 'mfa_replaced' }) })
        ctx.events.emit('mfa.enrolled', { userId })
        return after
      }
      return end(ctx, { pending, activate, claims })
    })
  }
  // An attacker with a stolen session may have begun the enrolment, so the attempts are limited.
  return announceChange(ctx, userId, { topic: 'mfa_enabled', locale }, (leaveUndoPoint) =>
    guardedConfirmation(ctx, userId, () => inUnit(leaveUndoPoint)),
  )
}

interface PendingFactor {
  /** Locked, before the activation. */
  readonly user: UserRecord
  /** Encrypted. */
  readonly secret: string
  /** Null if the account has no active factor. */
  readonly replacement: Replacement | null
  /** If not false, an undo link cannot remove the factor. */
  readonly isFinal: Irreversibility
}

/** @throws UnauthorizedError, MfaNotEnrolledError (nothing is pending) */
async function lockPendingFactor(ctx: AuthContext, userId: string, check: RowCheck): Promise<PendingFactor> {
  const user = await ctx.store.users.lock(userId)
  await check(ctx, user)
  if (!user?.isActive) throw new UnauthorizedError()
  const replacement = user.totpEnabledAt ? await findReplacement(ctx, userId) : null
  const secret = user.totpEnabledAt ? replacement?.secret : user.totpSecret
  if (!secret) throw new MfaNotEnrolledError()
  const isFinal = replacement ? replacement.isFinal : await irreversibilityOfFirst(ctx, userId, secret)
  return { user, secret, replacement, isFinal }
}

/** False after a later enrolment. */
export async function isPendingSecret(ctx: AuthContext, user: UserRecord, secret: string): Promise<boolean> {
  const pending = user.totpEnabledAt ? (await findReplacement(ctx, user.id))?.secret : user.totpSecret
  return Boolean(pending) && openSecret(ctx.mfaSecretKeys, user.id, pending ?? '') === secret
}

/** The caller has locked the user's row, so no other secret can become active in between. @throws MfaCodeInvalidError */
async function activateFactor(ctx: AuthContext, { user, replacement }: PendingFactor, code: string): Promise<UserRecord> {
  const now = ctx.now()
  const changes = { totpEnabledAt: now, updatedAt: now, ...(replacement ? acceptedIn(ctx, user, replacement, code) : {}) }
  if (!replacement && !(await acceptTotpCode(ctx, user, code))) throw new MfaCodeInvalidError()
  await ctx.store.users.update(user.id, changes)
  if (replacement) await recoveryCodesOf(ctx).replaceForUser(user.id, replacement.recoveryCodes)
  return { ...user, ...changes }
}

/** With the code's time step, so that nobody can use the code again. */
function acceptedIn(ctx: AuthContext, user: UserRecord, { secret }: Replacement, code: string) {
  const step = stepOfCode(ctx, { id: user.id, totpSecret: secret }, code)
  if (step === null) throw new MfaCodeInvalidError()
  return { totpSecret: sealPlain(ctx.mfaSecretKeys, user.id, secret), totpLastStep: step }
}
