import { type AuthContext, transaction } from '../context'
import { MfaAlreadyEnrolledError, UnauthorizedError } from '../core/errors'
import type { Locale } from '../http/locale'
import { refuseYoungFactor } from '../sessions/reauthentication/credential-age'
import { holdSession } from '../sessions/reauthentication/fresh-session'
import type { Irreversibility } from '../sessions/reauthentication/irreversible-change'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { announceFactor, recoveryCodesOf } from './accept-code'
import { beginEnrolment } from './enrolment'
import { type PresentedFactor, withFactor } from './presented-factor'
import { qrCode } from './qr-code'
import { hashRecoveryCode, newRecoveryCodes } from './recovery-codes'
import { sealSecret } from './secret-box'
import { newTotpSecret, provisioningUri } from './totp'

/** The data of a new factor: the secret for an authenticator app, and the recovery codes. The data is shown only once. */
export interface Enrolment {
  /** The secret for the authenticator app, in base32. */
  secret: string
  provisioningUri: string
  /** The QR code of `provisioningUri`, as an SVG document. */
  qrSvg: string
  recoveryCodes: string[]
}

/** Throws if the locked user row does not allow the enrolment. `ctx` is the context of the transaction. */
export type UserCheck = (ctx: AuthContext, user: UserRecord) => Promise<void> | void

/**
 * If these options contain a code of the active factor, a recovery code or a passkey, the new factor replaces the active factor. If a
 * passkey confirms the enrolment of a first factor, an undo link cannot remove that factor.
 */
export interface EnrolmentOptions extends PresentedFactor {
  /** The only session that may confirm the factor. Null: any session of the account may confirm the factor. */
  session?: SessionRecord | null
  check?: UserCheck
  /** Language of the notices. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * Begins an enrolment with a pending secret. The secret has no effect until one of its codes confirms the secret. A second call begins
 * again with a new secret. To replace an active factor, pass one of its codes, a recovery code or a passkey. The active factor and its
 * recovery codes stay valid until the new factor is confirmed.
 * @throws UnauthorizedError (the account was deleted or is inactive), InvalidTokenError (the session has ended), MfaAlreadyEnrolledError (a
 *   factor is active, and the call shows no factor); with a code MfaNotEnrolledError, MfaCodeInvalidError, MfaThrottledError,
 *   MfaFactorTooNewError; with a passkey PasskeyRejectedError, MfaFactorTooNewError
 */
export async function enrollTotp(
  ctx: AuthContext,
  userId: string,
  { session = null, check = () => undefined, locale, ...presented }: EnrolmentOptions = {},
): Promise<Enrolment> {
  const secret = newTotpSecret()
  const recoveryCodes = newRecoveryCodes(ctx.settings.mfaRecoveryCodesCount)
  const hashes = recoveryCodes.map((code) => hashRecoveryCode(userId, code))
  const begun = { session, check, sealed: sealSecret(ctx.mfaSecretKeys, userId, secret), hashes }
  const isShown = presented.code !== undefined || presented.credential !== undefined
  const user = isShown ? await beginConfirmed(ctx, userId, begun, { ...presented, locale }) : await beginFirst(ctx, userId, begun)
  return { secret, ...forAuthenticatorApp(ctx, user.email, secret), recoveryCodes }
}

/** Returns the data that an authenticator app scans. */
export function forAuthenticatorApp(
  { settings }: AuthContext,
  account: string,
  secret: string,
): Pick<Enrolment, 'provisioningUri' | 'qrSvg'> {
  const uri = provisioningUri({ secret, issuer: settings.mfaIssuer ?? '', account })
  return { provisioningUri: uri, qrSvg: qrCode(uri) }
}

interface Begun {
  readonly session: SessionRecord | null
  readonly check: UserCheck
  readonly sealed: string
  readonly hashes: readonly string[]
}

function beginFirst(ctx: AuthContext, userId: string, begun: Begun): Promise<UserRecord> {
  return transaction(ctx, async (ctx) => {
    const user = await lockAsking(ctx, userId, begun)
    if (user.totpEnabledAt) throw new MfaAlreadyEnrolledError()
    await storePending(ctx, userId, begun, false)
    return user
  })
}

/**
 * Begins an enrolment after a code or a passkey. The active factor stays required until the new factor is confirmed. Therefore access to
 * the mailbox alone is never enough to log in.
 */
async function beginConfirmed(
  ctx: AuthContext,
  userId: string,
  begun: Begun,
  { locale, ...presented }: PresentedFactor & { locale: Locale | undefined },
): Promise<UserRecord> {
  const { user, factor } = await withFactor(ctx, { userId, session: begun.session, locale }, presented, (accept) =>
    transaction(ctx, async (ctx) => {
      const user = await lockAsking(ctx, userId, begun)
      if (presented.credential === undefined) refuseYoungFactor(ctx, user)
      const { factor, isFinal } = await accept(ctx, user)
      if (user.totpEnabledAt)
        await beginEnrolment(ctx, userId, { secret: begun.sealed, recoveryCodes: begun.hashes, isFinal }, begun.session)
      else await storePending(ctx, userId, begun, isFinal)
      return { user, factor }
    }),
  )
  announceFactor(ctx, user, factor, locale)
  return user
}

async function lockAsking(ctx: AuthContext, userId: string, { session, check }: Begun): Promise<UserRecord> {
  const user = await ctx.store.users.lock(userId)
  if (!user?.isActive) throw new UnauthorizedError()
  await holdSession(ctx, session)
  await check(ctx, user)
  return user
}

async function storePending(ctx: AuthContext, userId: string, { sealed, hashes, session }: Begun, isFinal: Irreversibility): Promise<void> {
  await ctx.store.users.update(userId, { totpSecret: sealed, totpLastStep: null })
  await beginEnrolment(ctx, userId, { secret: sealed, recoveryCodes: null, isFinal }, session)
  await recoveryCodesOf(ctx).replaceForUser(userId, hashes)
}
