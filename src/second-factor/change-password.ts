import type { Request, RequestHandler, Response } from 'express'
import { announceChange } from '../accounts/undo/announce-change'
import { type AuthContext, transaction } from '../context'
import { MfaFactorTooNewError, UnauthorizedError } from '../core/errors'
import { describeStep, done } from '../http/description'
import { passwordText, readJsonBody } from '../http/input'
import { type Locale, localeOf } from '../http/locale'
import { type Route, step } from '../http/routes'
import { sendEmpty } from '../http/send'
import { checkPassword } from '../passwords/check-password'
import { hashPassword, newPasswordChanges } from '../passwords/verify-password'
import { clearEndedCookies, getAuth } from '../sessions/current-auth'
import { endOtherSessions, type KeptSession } from '../sessions/log-out'
import { operation } from '../sessions/operation'
import { codeDevice } from '../sessions/reauthentication/confirmation-code'
import { holdSession, requestSessionOf, sessionOf } from '../sessions/reauthentication/fresh-session'
import { hasYoungFactor, refuseYoungFactor } from '../sessions/reauthentication/methods'
import { findActiveUser } from '../sessions/reauthentication/request-session'
import { type CookieOfRequest, renewCookie, type StayingSession } from '../sessions/reissue-tokens'
import type { RouteGuards } from '../sessions/routes-by-delivery'
import { cookieOf, keepBrowser } from '../sessions/send-reissued-tokens'
import type { SessionRecord } from '../store/auth-store'
import { emitFactor, keptRefreshToken, unauthorized } from './accept-code'
import { forgetWrongCodes } from './code-limits'
import { findEnrolled } from './disable'
import {
  codeOrPasskey,
  factorRefusals,
  type IrreversibleFields,
  type PresentedFactor,
  presentedFactor,
  withFactor,
} from './irreversible-code'

interface PasswordBody extends IrreversibleFields {
  new_password: string
  /** Identifies the session, if the access token does not. */
  refresh_token?: string
}

export function passwordChangeRoute(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'POST',
    path: '/password-change/mfa',
    inEachDelivery: true,
    summary: 'Change the password with the second factor, and revoke all other sessions',
    answers: [done],
    refuses: [...unauthorized, ...factorRefusals(ctx)],
    access: 'fresh session',
    limit: 'password_change',
    checks: [matureFactor(ctx)],
    body: codeOrPasskey<PasswordBody>(ctx, { new_password: passwordText().allow(''), refresh_token: keptRefreshToken }),
    handle: async (req, res, body, delivery) => {
      const locale = localeOf(ctx, req)
      const staying = await changePasswordWithMfa(ctx, {
        userId: getAuth(req).sub,
        ...presentedFactor(body),
        device: await codeDevice(ctx, req, body),
        newPassword: body.new_password,
        session: sessionOf(req),
        cookie: cookieOf(ctx, req, delivery),
        locale,
      })
      await clearEndedCookies(ctx, req, res)
      keepBrowser(ctx, req, res, staying)
      sendEmpty(res)
    },
  })
}

/** A factor of the last 24 hours must not replace the old password. Runs after `aliveSession`. A passkey's age is checked later. */
function matureFactor(ctx: AuthContext): RequestHandler {
  const check = step(async (req, res) => {
    const { user } = requestSessionOf(req)
    if (hasYoungFactor(ctx, user) && !(await showsPasskey(ctx, req, res))) refuseYoungFactor(ctx, user)
  })
  return describeStep(check, { refuses: [MfaFactorTooNewError] })
}

async function showsPasskey({ settings }: AuthContext, req: Request, res: Response): Promise<boolean> {
  return settings.passkeysEnabled && Object(await readJsonBody(req, res))['credential'] !== undefined
}

export interface PasswordChangeWithMfa extends PresentedFactor {
  userId: string
  newPassword: string
  /** The session that stays. The change revokes every other session of the account. */
  keep?: KeptSession | undefined
  /** The session of the request. The session must still be live. The change does not revoke this session. */
  session?: SessionRecord | null | undefined
  /** The cookie of the request. The change replaces its value. */
  cookie?: CookieOfRequest | null | undefined
  /** Language of the notices. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * A code or a passkey replaces the old password. A code works even if `mfaEnabled` is off. A passkey needs no second factor.
 * @throws MfaNotEnrolledError, ValidationError, MfaCodeInvalidError, MfaThrottledError, PasskeyRejectedError, MfaFactorTooNewError
 */
export async function changePasswordWithMfa(
  ctx: AuthContext,
  { userId, newPassword, keep, session, cookie, locale, ...presented }: PasswordChangeWithMfa,
): Promise<StayingSession> {
  const isByCode = presented.credential === undefined
  const user = await (isByCode ? findEnrolled(ctx, userId) : findActiveUser(ctx, userId))
  await checkPassword(ctx, newPassword, user)
  const { factor, ...staying } = await announceChange(ctx, userId, { topic: 'password_changed', locale }, (leaveUndoPoint) =>
    withFactor(ctx, { userId, session, locale }, presented, async (accept) => {
      const hashedPassword = await hashPassword(ctx, newPassword) // before the transaction, because hashing is slow
      return transaction(ctx, async (ctx) => {
        const now = ctx.now()
        const user = await ctx.store.users.lock(userId)
        if (!user?.isActive) throw new UnauthorizedError()
        const held = await holdSession(ctx, session)
        if (session !== undefined && isByCode) refuseYoungFactor(ctx, user)
        const { factor, ...confirmed } = await accept(ctx, user)
        await leaveUndoPoint(ctx, { user, ...confirmed })
        const changes = { ...newPasswordChanges(ctx, hashedPassword, now), updatedAt: now }
        await ctx.store.users.update(userId, changes)
        ctx.events.emit('password.changed', { userId, by: 'change' })
        await ctx.store.userTokens.consumeAllForUser(userId, now, 'PASSWORD_RESET')
        await endOtherSessions(ctx, userId, session ? { sessionId: session.id } : keep)
        return { factor, user: { ...user, ...changes }, cookie: await renewCookie(ctx, held, cookie) }
      })
    }),
  )
  await forgetWrongCodes(ctx, userId)
  emitFactor(ctx, userId, factor)
  return staying
}
