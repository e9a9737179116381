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

/** Every fault in these fields gives the same error. */
export const passkeyFields = { credential: Joi.object().unknown(), challenge_token: Joi.string().allow('') }

export interface PasskeyFields {
  credential?: object
  challenge_token?: string
}

export function presentedPasskey({ credential, challenge_token: challenge = '' }: PasskeyFields): PresentedPasskey | null {
  return credential === undefined ? null : { credential, challenge }
}

export function optionalPasskey({ settings }: AuthContext): Joi.PartialSchemaMap<PasskeyFields> {
  const { credential, challenge_token } = passkeyFields
  return settings.passkeysEnabled ? { credential: credential.optional(), challenge_token: challenge_token.optional() } : {}
}

/** A passkey may replace the code if passkeys are on. */
export function codeOrPasskey<Body>(ctx: AuthContext, others: Joi.PartialSchemaMap<Body>): Joi.ObjectSchema<Body> {
  if (!ctx.settings.passkeysEnabled) return Joi.object<Body>({ ...others, ...previousToken, code: factorCode })
  const fields = { ...others, ...previousToken, code: factorCode.optional(), ...optionalPasskey(ctx) }
  return Joi.object<Body>(fields).xor('code', 'credential')
}

/** An optional code or passkey, after which an undo link cannot revert the change. */
export interface IrreversibleFields extends PasskeyFields {
  code?: string
  /** Of the account. The client that has it counts as a known device. */
  previous_token?: string
}

/** A passkey may replace the optional code if passkeys are on. */
export function irreversibleBody<Body extends IrreversibleFields>(
  ctx: AuthContext,
  others: Joi.PartialSchemaMap<Body>,
): Joi.ObjectSchema<Body> {
  const body = Joi.object<Body>({ ...others, ...previousToken, code: factorCode.optional(), ...optionalPasskey(ctx) })
  return ctx.settings.passkeysEnabled ? body.oxor('code', 'credential') : body
}

export function irreversibleRefusals({ settings }: AuthContext): readonly Refusal[] {
  const refusals = [MfaCodeInvalidError, MfaNotEnrolledError, MfaFactorTooNewError, MfaThrottledError]
  return settings.passkeysEnabled ? [...refusals, PasskeyRejectedError] : refusals
}

export function factorRefusals({ settings }: AuthContext): readonly Refusal[] {
  return settings.passkeysEnabled ? [...codeRefusals, MfaFactorTooNewError, PasskeyRejectedError] : codeRefusals
}

export function presentedFactor({ code, credential, challenge_token: challenge }: IrreversibleFields): PresentedFactor {
  return { code, credential, challenge }
}

interface IrreversibleAsker {
  readonly userId: string
  /** Requested the passkey's options. Null if the store keeps no sessions. */
  readonly session: Pick<SessionRecord, 'id'> | null
  /** Typed the code. Left out or null: an unknown client. */
  readonly device?: KnownDevice | null
}

/**
 * If not false, an undo link cannot revert the change: only the owner has an app or passkey that is older than 24 hours. The code, or the
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
  refuseYoungPasskey(ctx, proven)
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
 * In a stale session, answers 422 MFA_NOT_ENROLLED or 429 MFA_THROTTLED to a code before 403 REAUTHENTICATION_REQUIRED. Place it between
 * `aliveSession` and `freshSession`. In a fresh session, the route sends these errors. Counts no attempt.
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
  /** JSON of `navigator.credentials.get()` for the options of a reauthentication. */
  credential?: unknown
  /** Required with a credential: the `challenge` of those options. */
  challenge?: string | undefined
  /** With a credential: the session that requested the options. Left out: the session of the request, if there is one. */
  sessionId?: string | undefined
  /** With a code: the known device of the request. Left out or null: an unknown client. */
  device?: KnownDevice | null | undefined
}

interface FactorOwner {
  readonly userId: string
  readonly session?: Pick<SessionRecord, 'id'> | null | undefined
  /** Language of the notices. Default: `defaultLocale`. */
  readonly locale?: Locale | undefined
}

interface AcceptedFactor {
  readonly factor: Factor
  readonly isFinal: Irreversibility
  readonly usedRecoveryCode: boolean
}

/** In the change's transaction, which locked the user's row. @throws MfaNotEnrolledError, MfaCodeInvalidError, PasskeyRejectedError */
type AcceptFactor = (ctx: AuthContext, user: UserRecord) => Promise<AcceptedFactor>

/**
 * A code is counted before it is verified. A passkey is verified before the change begins, because verifying takes time. A passkey of the
 * last 24 hours is rejected: an attacker with a stolen session could have added it.
 * @param change must call `accept` exactly once
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
  refuseYoungPasskey(ctx, proven)
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
