import type { AuthContext } from '../context'
import { MfaNotEnrolledError } from '../errors'
import type { Locale } from '../http/locale'
import { type Finality, passkeyDigest } from '../step-up/finality'
import { refuseYoungPasskey } from '../step-up/young-credential'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { acceptSecondFactor, type Factor, isOldFactor } from './accept-code'
import { guardedAttempt } from './guarded-attempt'
import { acceptPasskey, provePasskey, refusingReplay } from './prove-passkey'

/** The second factor of a person who is logged in: a code, or a passkey instead. */
export interface ShownFactor {
  /** A code of the authenticator app, or a recovery code. */
  code?: string | undefined
  /** `PublicKeyCredential.toJSON()` of `navigator.credentials.get()`, by the options of a reauthentication. */
  credential?: unknown
  /** With a credential: the `challenge` of those options. */
  challenge?: string | undefined
  /** With a credential: the session that the options were for. Left out: none, or the session of the request. */
  sessionId?: string | undefined
}

/** The account and session that show the factor. */
export interface FactorOwner {
  readonly userId: string
  readonly session?: Pick<SessionRecord, 'id'> | null | undefined
  /** Language of the notices. Default: `defaultLocale`. */
  readonly locale?: Locale | undefined
}

/** The accepted factor, with what the notice of the change says about it. */
export interface AcceptedFactor {
  readonly factor: Factor
  readonly isFinal: Finality
  readonly usedRecoveryCode: boolean
}

/**
 * Accepts the factor. Call it inside the transaction of the change, which has locked the user's row.
 * @throws MfaNotEnrolledError, MfaCodeInvalidError, PasskeyRejectedError
 */
export type AcceptFactor = (ctx: AuthContext, user: UserRecord) => Promise<AcceptedFactor>

/**
 * Runs a change that a second factor confirms. Counts a code before it is verified. Verifies a passkey before the change begins, because
 * that takes time. Rejects a passkey that was added within a day, because an attacker with a stolen session could have added it.
 * @param change must call its `accept` once
 * @throws MfaThrottledError, MfaFactorTooNewError, PasskeyRejectedError, and what the change throws
 */
export async function withFactor<T>(
  ctx: AuthContext,
  { userId, session, locale }: FactorOwner,
  { code = '', credential, challenge = '', sessionId = session?.id }: ShownFactor,
  change: (accept: AcceptFactor) => Promise<T>,
): Promise<T> {
  if (credential === undefined) return guardedAttempt(ctx, { userId, code, locale }, () => change(acceptCode(code)))
  const proven = await provePasskey(ctx, 'reauthenticate', { userId, boundTo: sessionId ?? null }, { credential, challenge })
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
