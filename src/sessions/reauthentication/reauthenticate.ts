import { type AuthContext, transaction } from '../../context'
import type { AuthMethod } from '../../core/amr'
import { hasPasswords } from '../../core/config/every-setting'
import {
  AccountInactiveError,
  InvalidCredentialsError,
  InvalidTokenError,
  MfaCodeInvalidError,
  MfaNotEnrolledError,
  MfaRequiredError,
  UnauthorizedError,
  ValidationError,
} from '../../core/errors'
import type { Locale } from '../../http/locale'
import { acceptPasskey, type PresentedPasskey, refusingReplay, type VerifiedPasskey, verifyPasskey } from '../../passkeys/verify-passkey'
import { unusablePassword, verifyPassword } from '../../passwords/verify-password'
import { type AppliedLimit, countAttempt } from '../../rate-limits/rate-limiter'
import { acceptTotpCode } from '../../second-factor/accept-code'
import { guardedAttempt } from '../../second-factor/code-limits'
import type { SessionRecord, UserRecord } from '../../store/auth-store'
import { claimsToGoOn, type HostClaims } from '../ask-for-claims'
import type { KnownDevice } from '../devices/device-cookie'
import { isAlive } from '../find-session'
import type { OpenedServerSession } from '../login'
import { addMethods, keepServerSession, keepStateless, keepTokens, type ReissuedTokens } from '../reissue-tokens'
import type { TicketOwner } from '../tickets'
import { type ConfirmationCode, requestConfirmationCode, tryConfirmationCode } from './confirmation-code'
import { holdSession, requireNewToken } from './fresh-session'
import { needsFactor, refuseYoungFactor, refuseYoungPasskey, takesPassword } from './methods'
import { takeConfirmationTicket } from './provider-proof'
import { findActiveUser } from './request-session'

/** At least one credential is required. */
interface PresentedCredentials {
  password?: string | undefined
  /** A code of the authenticator app. A recovery code is not accepted. */
  code?: string | undefined
  /** A passkey response to `passkeyReauthenticationOptions`, for this session. */
  passkey?: PresentedPasskey | undefined
  /** A code that `requestConfirmationCode` mailed for this session. */
  emailCode?: string | undefined
  /** From another login at a provider. Every attempt uses it up. `owner` is null if the caller may not use a ticket. */
  ticket?: { text: string; owner: TicketOwner | null } | undefined
}

interface Reauthenticating {
  readonly user: UserRecord
  /** Null if the store keeps no sessions. */
  readonly session: SessionRecord | null
  /** Of the access token. Used if the session's row has no methods. */
  readonly amr: readonly AuthMethod[]
  /** The row becomes fresh, and the token is replaced, only if this is the session's live token. */
  readonly refreshToken: string | null
  readonly device?: KnownDevice | null
}

export type Reauthenticated = ReissuedTokens | OpenedServerSession

/**
 * Does not extend the session. If a second factor has been active for 24 hours, only its code and a passkey count. Without the session's
 * live token, only the new access token is fresh: a copy of the session's token must not become fresh.
 * @throws without counting an attempt: MfaRequiredError, MfaFactorTooNewError, MfaNotEnrolledError, ReauthenticationRequiredError
 */
export async function reauthenticate(ctx: AuthContext, who: Reauthenticating, presented: PresentedCredentials): Promise<Reauthenticated> {
  requireEnough(ctx, who.user, presented)
  await requireNewToken(ctx, who)
  const { password, code, emailCode, ticket } = presented
  const { session, amr: asking, user } = who
  const passkey = await verifiedPasskey(ctx, who, presented)
  const useCode = emailCode === undefined ? undefined : await tryConfirmationCode(ctx, who, emailCode)
  // Before the ticket is used: it is used up even if a later step fails.
  const claims = await claimsToGoOn(ctx, { userId: user.id, session, amr: addMethods(session, asking, presentedMethods(presented)) })
  const isConfirmed = ticket && (await takeConfirmationTicket(ctx, ticket.owner, ticket.text))
  const confirm = () =>
    refusingReplay(() =>
      transaction(ctx, (ctx) =>
        makeFresh(ctx, { ...who, claims }, presented, async (ctx, user) => {
          if (passkey) await acceptPasskey(ctx, user, passkey)
          await useCode?.(ctx)
          await isConfirmed?.(ctx, user)
        }),
      ),
    )
  const withCode =
    code === undefined ? confirm : () => guardedAttempt(ctx, { userId: who.user.id, code, device: who.device ?? null }, confirm)
  if (password === undefined) return withCode()
  return withPassword(ctx, withoutUnusable(ctx, who.user), password, withCode, who.session)
}

/** Runs before any credential is verified. */
function requireEnough(ctx: AuthContext, user: UserRecord, { password, code, passkey, emailCode, ticket }: PresentedCredentials): void {
  if ([password, code, passkey, emailCode, ticket].every((presented) => presented === undefined))
    throw new ValidationError({ details: { errors: [{ path: hasPasswords(ctx.settings) ? 'password' : 'code', rule: 'object.missing' }] } })
  if (code === undefined && passkey === undefined && needsFactor(ctx, user)) throw new MfaRequiredError()
  if (code === undefined) return
  if (user.totpEnabledAt === null) throw new MfaNotEnrolledError()
  refuseYoungFactor(ctx, user)
}

/** Runs before the transaction, because verifying takes time. */
async function verifiedPasskey(
  ctx: AuthContext,
  { user, session }: Reauthenticating,
  { passkey: presented }: PresentedCredentials,
): Promise<VerifiedPasskey | null> {
  if (!presented) return null
  const proven = await verifyPasskey(ctx, 'reauthenticate', { userId: user.id, boundTo: session?.id ?? null }, presented)
  refuseYoungPasskey(ctx, proven)
  return proven
}

/** An unusable hash lets the error take as long as for a wrong password, if the account has no password or passwords are off. */
function withoutUnusable(ctx: AuthContext, user: UserRecord): UserRecord {
  return takesPassword(ctx, user) ? user : { ...user, hashedPassword: unusablePassword() }
}

async function makeFresh(
  ctx: AuthContext,
  { user: seen, session: asked, amr: asking, refreshToken, claims }: Reauthenticating & { claims: HostClaims },
  presented: PresentedCredentials,
  acceptOthers: (ctx: AuthContext, user: UserRecord) => Promise<void>,
): Promise<Reauthenticated> {
  const { password, code } = presented
  const user = await lockAsSeen(ctx, seen, password)
  const session = await holdSession(ctx, asked)
  if (code !== undefined && !(await acceptTotpCode(ctx, user, code))) throw new MfaCodeInvalidError()
  await acceptOthers(ctx, user)
  const now = ctx.now()
  const amr = addMethods(session, asking, presentedMethods(presented))
  const renewal = { amr, authenticatedAt: now, tokenAuthenticatedAt: now, refreshToken, claims }
  if (!session) return keepStateless(ctx, user, renewal, null)
  return session.kind === 'session' ? keepServerSession(ctx, session, renewal) : keepTokens(ctx, user, session, renewal)
}

function presentedMethods({ password, code, passkey, emailCode, ticket }: PresentedCredentials): AuthMethod[] {
  const methods: [unknown, AuthMethod][] = [
    [password, 'pwd'],
    [code, 'otp'],
    [passkey, 'passkey'],
    [emailCode, 'email'],
    [ticket, 'ext'],
  ]
  return methods.filter(([given]) => given !== undefined).map(([, method]) => method)
}

/** A password reset since the check must cancel this request. */
async function lockAsSeen(ctx: AuthContext, seen: UserRecord, password: string | undefined): Promise<UserRecord> {
  const user = await ctx.store.users.lock(seen.id)
  if (!user) throw new UnauthorizedError()
  if (!user.isActive) throw new AccountInactiveError()
  if (password !== undefined && user.hashedPassword !== seen.hashedPassword) throw new InvalidCredentialsError()
  if (user.totpEnabledAt?.getTime() !== seen.totpEnabledAt?.getTime()) throw new InvalidTokenError()
  return user
}

/** The input of `auth.service.reauthenticate`. There is no request, so `sessionId` identifies the session. */
export interface ServiceReauthentication extends Omit<PresentedCredentials, 'ticket' | 'passkey'> {
  /** `PublicKeyCredential.toJSON()` of `navigator.credentials.get()`, with the `challenge` of `passkeyStepOptions` for this session. */
  credential?: unknown
  challenge?: string | undefined
  /** The ticket from the callback of a reauthentication at a provider. */
  ticket?: string | undefined
  userId: string
  /** `sid` of the access token, or the id of a server-side session. Leave the id out only if the store keeps no sessions. */
  sessionId?: string | undefined
  /** The methods of the session. Used if the store keeps no sessions, or if the session's row has no methods. */
  amr?: readonly AuthMethod[] | undefined
  /** The live refresh token of the session. The call replaces this token. Without it, only the new access token is fresh. */
  refreshToken?: string | undefined
}

/** @throws the errors of `reauthenticate`; InvalidTokenError for a session that is not live, or not of this account */
export async function reauthenticateById(
  ctx: AuthContext,
  { userId, sessionId, amr = [], refreshToken = undefined, ticket, credential, challenge = '', ...presented }: ServiceReauthentication,
): Promise<Reauthenticated> {
  const user = await findActiveUser(ctx, userId)
  const session = ctx.store.sessions ? await findOwnSession(ctx, userId, sessionId) : null
  const brought = ticket === undefined ? undefined : { text: ticket, owner: { userId, sessionId: session?.id ?? null } }
  const passkey = credential === undefined ? undefined : { credential, challenge }
  return reauthenticate(ctx, { user, session, amr, refreshToken: refreshToken ?? null }, { ...presented, passkey, ticket: brought })
}

/** @throws the errors of `requestConfirmationCode`; InvalidTokenError for a session that is not live, or not of this account */
export async function requestCodeById(
  ctx: AuthContext,
  { userId, sessionId, locale }: { userId: string; sessionId: string; locale: Locale },
): Promise<ConfirmationCode | null> {
  const user = await findActiveUser(ctx, userId)
  return requestConfirmationCode(ctx, { user, session: await findOwnSession(ctx, userId, sessionId) }, { locale })
}

async function findOwnSession(ctx: AuthContext, userId: string, id: string | undefined): Promise<SessionRecord> {
  const found = id === undefined ? null : await ctx.store.sessions?.find({ id })
  if (found?.session.userId !== userId || !isAlive(found.session, ctx.now())) throw new InvalidTokenError()
  return found.session
}

/**
 * In 900 s, a session may send five wrong passwords, and all sessions of an account 25: one stolen session cannot use up the owner's
 * attempts. Counts before the check, so that of many parallel attempts at most five are checked. A success takes its own attempts back.
 * @param session null or left out for a caller without a session: the account may then send five wrong passwords
 */
export async function withPassword<T>(
  ctx: AuthContext,
  user: UserRecord,
  password: string,
  work: () => Promise<T>,
  session?: SessionRecord | null,
): Promise<T> {
  const counted = await countAttempt(ctx, limitsOfPassword(ctx, user, session))
  try {
    // An expired password is good only for a login that then owes a new one.
    const hash = ctx.loginTasks?.newPassword && user.passwordExpiredAt ? null : user.hashedPassword
    const { matches } = await verifyPassword(ctx, hash, password, { isKnownDevice: true })
    if (!matches) throw new InvalidCredentialsError()
    const result = await work()
    await counted.release()
    return result
  } catch (error) {
    if (!(error instanceof InvalidCredentialsError)) await counted.release()
    throw error
  }
}

function limitsOfPassword({ rateLimits }: AuthContext, user: UserRecord, session?: SessionRecord | null): AppliedLimit[] {
  if (!session) return [{ name: 'password:account', subject: user.id, rateLimit: rateLimits.password }]
  return [
    { name: 'password:session', subject: session.id, rateLimit: rateLimits.password },
    { name: 'password:sessions', subject: user.id, rateLimit: rateLimits.passwordOfAccount },
  ]
}
