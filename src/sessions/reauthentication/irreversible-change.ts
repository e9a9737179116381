import { createHash } from 'node:crypto'
import type { RequestHandler } from 'express'
import type { AuthContext } from '../../context'
import { type AuthMethod, isSecondFactor } from '../../core/amr'
import { EmailNotVerifiedError, MfaRequiredError } from '../../core/errors'
import { localized } from '../../core/texts/phrase-book'
import { describeStep } from '../../http/description'
import { step } from '../../http/routes'
import type { PasskeyRecord, UserRecord } from '../../store/auth-store'
import { findAuth } from '../current-auth'
import { requestSessionOf } from './fresh-session'

/**
 * Whether no undo link can revert a change. False: an undo link can. True: a code of an authenticator app older than a day confirmed it.
 * Text: the digest of a passkey older than a day that confirmed it.
 */
export type Irreversibility = boolean | string

/** Identifies a passkey also after its row was deleted. */
export function passkeyDigest({ credentialId }: Pick<PasskeyRecord, 'credentialId'>): string {
  return createHash('sha256').update(credentialId).digest('base64url')
}

/** One word without spaces and dots. Empty: an undo link can revert the change. */
export function writeIrreversibility(isFinal: Irreversibility): string {
  return isFinal === true ? 'final' : isFinal || ''
}

export function readIrreversibility(word: string | undefined): Irreversibility {
  return word === 'final' ? true : word || false
}

/** @param amr undefined for a call without a session, which is not checked */
export function requireFactor({ settings }: AuthContext, user: UserRecord, amr: readonly AuthMethod[] | undefined): void {
  if (amr && settings.mfaEnabled && user.totpEnabledAt && !amr.some(isSecondFactor)) throw new MfaRequiredError()
}

/** Runs after `aliveSession`. */
export function factorPresented(ctx: AuthContext): RequestHandler {
  const check = step((req) => requireFactor(ctx, requestSessionOf(req).user, findAuth(req)?.amr))
  return describeStep(check, { refuses: [MfaRequiredError] })
}

/**
 * An attacker may have registered an unverified address. The owner's verification would have to remove an added way to log in. Applies only
 * if the account can verify its address, which needs a mailer and a column for `emailVerifiedAt`.
 */
export function requireVerifiedAddress(ctx: AuthContext, user: UserRecord): void {
  const canProve = ctx.mailQueue !== null && ctx.store.users.fields.has('emailVerifiedAt')
  if (!canProve || user.emailVerifiedAt !== null) return
  throw new EmailNotVerifiedError({
    details: { request: `${ctx.prefix}/email-verify/request` },
    explains: localized('error.prove_address_first'),
  })
}

/** Runs after `aliveSession` and before `freshSession`. */
export function verifiedAddress(ctx: AuthContext): RequestHandler {
  const check = step((req) => requireVerifiedAddress(ctx, requestSessionOf(req).user))
  return describeStep(check, { refuses: [EmailNotVerifiedError] })
}
