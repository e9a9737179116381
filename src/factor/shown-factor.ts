import type { AuthContext } from '../context'
import { MfaNotEnrolledError } from '../errors'
import type { Locale } from '../http/locale'
import { type Finality, passkeyDigest } from '../step-up/finality'
import { refuseYoungPasskey } from '../step-up/young-credential'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { acceptSecondFactor, type Factor, isOldFactor } from './accept-code'
import { guardedAttempt } from './guarded-attempt'
import { acceptPasskey, provePasskey, refusingReplay } from './prove-passkey'

/** What a signed-in person shows of a second factor: a code, or a passkey in its place. */
export interface ShownFactor {
  /** Of the authenticator app, or a recovery code. */
  code?: string | undefined
  /** `PublicKeyCredential.toJSON()` of `navigator.credentials.get()`, by the options of a reauthentication. */
  credential?: unknown
  /** With a credential: from those options. */
  challenge?: string | undefined
  /** With a credential: the session that the options were for. Left out: none, or the one that asks. */
  sessionId?: string | undefined
}

/** Who shows it. */
export interface FactorOwner {
  readonly userId: string
  readonly session?: Pick<SessionRecord, 'id'> | null | undefined
  /** Of the notices. Default: `defaultLocale`. */
  readonly locale?: Locale | undefined
}

/** What was shown, and what the notice of the change says of it. */
export interface AcceptedFactor {
  readonly factor: Factor
  readonly isFinal: Finality
  readonly usedRecoveryCode: boolean
}

/** Inside the transaction that relies on it, which holds the user's row. @throws MfaNotEnrolledError, MfaCodeInvalidError, PasskeyRejectedError */
export type AcceptFactor = (ctx: AuthContext, user: UserRecord) => Promise<AcceptedFactor>

/**
 * Makes a change that a second factor confirms. A code is counted before it is looked at. A passkey is checked before the change begins,
 * because that takes time. One that was added within a day is refused, because an attacker with a stolen session could have added it.
 * @param change has to call what it is given, once
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
