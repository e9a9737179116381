import type { RequestHandler } from 'express'
import Joi from 'joi'
import { type AuthContext, transaction } from '../context'
import {
  AccountInactiveError,
  MfaCodeInvalidError,
  MfaFactorTooNewError,
  MfaNotEnrolledError,
  MfaThrottledError,
  PasskeyRejectedError,
  UnauthorizedError,
} from '../core/errors'
import { describeStep, type Refusal } from '../http/description'
import { readJsonBody } from '../http/input'
import type { Locale } from '../http/locale'
import { step } from '../http/routes'
import { acceptPasskey, type PresentedPasskey, refusingReplay, verifyPasskey } from '../passkeys/verify-passkey'
import { type KnownDevice, previousToken } from '../sessions/devices/device-cookie'
import { codeDevice } from '../sessions/reauthentication/confirmation-code'
import { isFresh, requestSessionOf } from '../sessions/reauthentication/fresh-session'
import { type Irreversibility, passkeyDigest } from '../sessions/reauthentication/irreversible-change'
import { refuseYoungFactor, refuseYoungPasskey } from '../sessions/reauthentication/methods'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { acceptSecondFactor, acceptTotpCode, codeRefusals, type Factor, factorCode, isOldFactor } from './accept-code'
import { guardedAttempt, takeCode } from './code-limits'

/** The body fields of a passkey. Every fault in these fields gives the same error. */
export const passkeyFields = { credential: Joi.object().unknown(), challenge_token: Joi.string().allow('') }

/** The passkey fields of a body. */
export interface PasskeyFields {
  credential?: object
  challenge_token?: string
}

/** Returns the passkey of a body. Returns null if the body has no passkey. */
export function presentedPasskey({ credential, challenge_token: challenge = '' }: PasskeyFields): PresentedPasskey | null {
  return credential === undefined ? null : { credential, challenge }
}

/** Returns the optional body fields of a passkey. Returns no fields if passkeys are off. */
export function optionalPasskey({ settings }: AuthContext): Joi.PartialSchemaMap<PasskeyFields> {
  const { credential, challenge_token } = passkeyFields
  return settings.passkeysEnabled ? { credential: credential.optional(), challenge_token: challenge_token.optional() } : {}
}

/** Returns the schema of a body that requires a code of the second factor. If passkeys are on, a passkey may replace the code. */
export function codeOrPasskey<Body>(ctx: AuthContext, others: Joi.PartialSchemaMap<Body>): Joi.ObjectSchema<Body> {
  if (!ctx.settings.passkeysEnabled) return Joi.object<Body>({ ...others, ...previousToken, code: factorCode })
  const fields = { ...others, ...previousToken, code: factorCode.optional(), ...optionalPasskey(ctx) }
  return Joi.object<Body>(fields).xor('code', 'credential')
}

/**
 * The body fields of an optional factor: a code of the authenticator app or a passkey. With such a factor, an undo link cannot revert the
 * change.
 */
export interface IrreversibleFields extends PasskeyFields {
  code?: string
  /** A refresh token of the account. The client that has it counts as a known device. */
  previous_token?: string
}

/** Returns the schema of a body with an optional code of the authenticator app. If passkeys are on, a passkey may replace the code. */
export function irreversibleBody<Body extends IrreversibleFields>(
  ctx: AuthContext,
  others: Joi.PartialSchemaMap<Body>,
): Joi.ObjectSchema<Body> {
  const body = Joi.object<Body>({ ...others, ...previousToken, code: factorCode.optional(), ...optionalPasskey(ctx) })
  return ctx.settings.passkeysEnabled ? body.oxor('code', 'credential') : body
}

/** Returns the errors of a route with an optional code or passkey. */
export function irreversibleRefusals({ settings }: AuthContext): readonly Refusal[] {
  const refusals = [MfaCodeInvalidError, MfaNotEnrolledError, MfaFactorTooNewError, MfaThrottledError]
  return settings.passkeysEnabled ? [...refusals, PasskeyRejectedError] : refusals
}

/** Returns the errors of a route that requires a code, a recovery code or a passkey. */
export function factorRefusals({ settings }: AuthContext): readonly Refusal[] {
  return settings.passkeysEnabled ? [...codeRefusals, MfaFactorTooNewError, PasskeyRejectedError] : codeRefusals
}

/** Reads the code or the passkey of a request body, for the routes that change the second factor. */
export function presentedFactor({ code, credential, challenge_token: challenge }: IrreversibleFields): PresentedFactor {
  return { code, credential, challenge }
}

/** The account and session of the request. */
interface IrreversibleAsker {
  readonly userId: string
  /** The session that requested the passkey's options. Null if the store keeps no sessions. */
  readonly session: Pick<SessionRecord, 'id'> | null
  /** The known device that typed the code. Left out or null: an unknown client. */
  readonly device?: KnownDevice | null
}

/**
 * Checks the code or passkey that a request can contain to confirm its change. If the result is not false, an undo link cannot revert the
 * change, because only the owner has an authenticator app or passkey that is older than 24 hours. The code, or the
 * challenge of the passkey, is used up even if the change fails later.
 * @throws MfaCodeInvalidError, MfaNotEnrolledError, MfaFactorTooNewError, MfaThrottledError, PasskeyRejectedError
 */
export async function confirmIrreversible(
  ctx: AuthContext,
  asker: IrreversibleAsker,
  { code, ...fields }: IrreversibleFields,
): Promise<Irreversibility> {
  if (code !== undefined) return confirmIrreversibleByCode(ctx, asker, code)
  const presented = presentedPasskey(fields)
  return presented !== null && confirmIrreversibleByPasskey(ctx, asker, presented)
}

async function confirmIrreversibleByPasskey(
  ctx: AuthContext,
  { userId, session }: IrreversibleAsker,
  presented: PresentedPasskey,
): Promise<string> {
  const proven = await verifyPasskey(ctx, 'reauthenticate', { userId, boundTo: session?.id ?? null }, presented)
  refuseYoungPasskey(ctx, proven.passkey)
  await refusingReplay(() => transaction(ctx, async (ctx) => acceptPasskey(ctx, await lockActive(ctx, userId), proven)))
  return passkeyDigest(proven.passkey)
}

async function confirmIrreversibleByCode(ctx: AuthContext, { userId, device = null }: IrreversibleAsker, code: string): Promise<true> {
  const accept = () =>
    transaction(ctx, async (ctx) => {
      const user = await lockActive(ctx, userId)
      if (!ctx.settings.mfaEnabled || user.totpEnabledAt === null) throw new MfaNotEnrolledError()
      refuseYoungFactor(ctx, user)
      if (!(await acceptTotpCode(ctx, user, code))) throw new MfaCodeInvalidError()
    })
  await guardedAttempt(ctx, { userId, code, device }, accept)
  return true
}

async function lockActive(ctx: AuthContext, userId: string) {
  const user = await ctx.store.users.lock(userId)
  if (!user) throw new UnauthorizedError()
  if (!user.isActive) throw new AccountInactiveError()
  return user
}

/**
 * Returns a middleware that answers 422 MFA_NOT_ENROLLED or 429 MFA_THROTTLED to a code in a stale session, because these errors come
 * before 403 REAUTHENTICATION_REQUIRED. Place the middleware between `aliveSession` and `freshSession`. It does nothing in a fresh session,
 * because the route itself sends these errors. It counts no attempt.
 */
export function codeBeforeFreshness(ctx: AuthContext, { isRequired = false } = {}): RequestHandler {
  const check = step(async (req, res) => {
    const found = requestSessionOf(req)
    if (isFresh(found, ctx.settings.freshSessionSeconds)) return
    const { code, previous_token } = Object(await readJsonBody(req, res)) as Record<string, unknown> // not validated yet
    if (found.user.totpEnabledAt === null) {
      if (isRequired || typeof code === 'string') throw new MfaNotEnrolledError()
    } else if (typeof code === 'string') {
      const previous = typeof previous_token === 'string' ? { previous_token } : {}
      const device = await codeDevice(ctx, req, { code, ...previous })
      await (await takeCode(ctx, { userId: found.user.id, code, device })).release()
    }
  })
  return describeStep(check, { refuses: [MfaNotEnrolledError, MfaThrottledError] })
}

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
interface FactorOwner {
  readonly userId: string
  readonly session?: Pick<SessionRecord, 'id'> | null | undefined
  /** Language of the notices. Default: `defaultLocale`. */
  readonly locale?: Locale | undefined
}

/** The accepted factor, and the facts for the notice of the change. */
interface AcceptedFactor {
  readonly factor: Factor
  readonly isFinal: Irreversibility
  readonly usedRecoveryCode: boolean
}

/**
 * Accepts the factor. Call the function inside the transaction of the change. That transaction must have locked the user's row.
 * @throws MfaNotEnrolledError, MfaCodeInvalidError, PasskeyRejectedError
 */
type AcceptFactor = (ctx: AuthContext, user: UserRecord) => Promise<AcceptedFactor>

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
