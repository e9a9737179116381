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
import type { Refusal } from '../http/description'
import { acceptPasskey, type PresentedPasskey, refusingReplay, verifyPasskey } from '../passkeys/verify-passkey'
import { type KnownDevice, previousToken } from '../sessions/devices/known-device'
import { refuseYoungFactor, refuseYoungPasskey } from '../sessions/reauthentication/credential-age'
import { type Irreversibility, passkeyDigest } from '../sessions/reauthentication/irreversible-change'
import type { SessionRecord } from '../store/auth-store'
import { acceptTotpCode } from './accept-code'
import { codeRefusals, factorCode } from './factor-code'
import { guardedAttempt } from './guarded-attempt'
import type { PresentedFactor } from './presented-factor'

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
export interface IrreversibleAsker {
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
