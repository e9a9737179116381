import type { AuthContext } from '../context'
import { MfaNotEnrolledError } from '../core/errors'
import type { Locale } from '../http/locale'
import { acceptPasskey, refusingReplay, verifyPasskey } from '../passkeys/verify-passkey'
import type { KnownDevice } from '../sessions/devices/known-device'
import { refuseYoungPasskey } from '../sessions/reauthentication/credential-age'
import { type Irreversibility, passkeyDigest } from '../sessions/reauthentication/irreversible-change'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { acceptSecondFactor, type Factor, isOldFactor } from './accept-code'
import { guardedAttempt } from './guarded-attempt'

/** The second factor that a logged-in person shows: a code or a passkey. */
export interface PresentedFactor {
  /** A code of the authenticator app, or a recovery code. */
  code?: string | undefined
  /** The JSON of the credential that `navigator.credentials.get()` returned for the options of a reauthentication. */
  credential?: unknown
  /** Required with a credential: the `challenge` of those options. */
  challenge?: string | undefined
  /** With a credential: the session that requested the options. Left out: the session of the request, if there is one. */
  sessionId?: string | undefined
  /** With a code: the known device of the request. Left out or null: an unknown client. */
  device?: KnownDevice | null | undefined
}

/** The account of the person who shows the factor, and the session of the request. */
export interface FactorOwner {
  readonly userId: string
  readonly session?: Pick<SessionRecord, 'id'> | null | undefined
  /** Language of the notices. Default: `defaultLocale`. */
  readonly locale?: Locale | undefined
}

/** The accepted factor, and the facts for the notice of the change. */
export interface AcceptedFactor {
  readonly factor: Factor
  readonly isFinal: Irreversibility
  readonly usedRecoveryCode: boolean
}

/**
 * Accepts the factor. Call the function inside the transaction of the change. That transaction must have locked the user's row.
 * @throws MfaNotEnrolledError, MfaCodeInvalidError, PasskeyRejectedError
 */
export type AcceptFactor = (ctx: AuthContext, user: UserRecord) => Promise<AcceptedFactor>

/**
 * Runs a change that a second factor confirms. A code is counted before it is verified. A passkey is verified before the change begins,
 * because verifying takes time. A passkey that was added less than 24 hours ago is rejected, because an attacker with a stolen session
 * could have added the passkey.
 * @param change the change; it must call `accept` exactly once
 * @throws MfaThrottledError, MfaFactorTooNewError, PasskeyRejectedError, and the errors of the change
 */
export async function withFactor<T>(
  ctx: AuthContext,
  { userId, session, locale }: FactorOwner,
  { code = '', credential, challenge = '', sessionId = session?.id, device = null }: PresentedFactor,
  change: (accept: AcceptFactor) => Promise<T>,
): Promise<T> {
  if (credential === undefined) return guardedAttempt(ctx, { userId, code, locale, device }, () => change(acceptCode(code)))
  const proven = await verifyPasskey(ctx, 'reauthenticate', { userId, boundTo: sessionId ?? null }, { credential, challenge })
  refuseYoungPasskey(ctx, proven.passkey)
  return refusingReplay(() =>
    change(async (ctx, user) => {
      await acceptPasskey(ctx, user, proven)
      return { factor: 'passkey', isFinal: passkeyDigest(proven.passkey), usedRecoveryCode: false }
    }),
  )
}

function acceptCode(code: string): AcceptFactor {
  return async (ctx, user) => {
    if (!user.totpEnabledAt) throw new MfaNotEnrolledError()
    const factor = await acceptSecondFactor(ctx, user, code)
    return { factor, isFinal: isOldFactor(ctx, user, factor), usedRecoveryCode: factor === 'recovery_code' }
  }
}
