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
 * Says whether an undo link can revert a change. A change is final if no undo link can revert it.
 * - False: the change is not final.
 * - True: the change is final, because a code confirmed it. The authenticator app of the code is older than a day.
 * - Text: the change is final, because a passkey confirmed it. The passkey is older than a day. The text is the digest of the passkey.
 */
export type Irreversibility = boolean | string

/** Returns a digest that still identifies a passkey after its row was deleted. */
export function passkeyDigest({ credentialId }: Pick<PasskeyRecord, 'credentialId'>): string {
  return createHash('sha256').update(credentialId).digest('base64url')
}

/** Writes the value as one word without spaces and dots. If an undo link can revert the change, the result is the empty string. */
export function writeIrreversibility(isFinal: Irreversibility): string {
  return isFinal === true ? 'final' : isFinal || ''
}

export function readIrreversibility(word: string | undefined): Irreversibility {
  return word === 'final' ? true : word || false
}

/**
 * Rejects a session without the second factor, if the account has a second factor.
 * @param amr the methods of the session; undefined for a call without a session, which the function does not check
 * @throws MfaRequiredError
 */
export function requireFactor({ settings }: AuthContext, user: UserRecord, amr: readonly AuthMethod[] | undefined): void {
  if (amr && settings.mfaEnabled && user.totpEnabledAt && !amr.some(isSecondFactor)) throw new MfaRequiredError()
}

/** Returns `requireFactor` as a middleware for requests with an access token. The middleware runs after `aliveSession`. */
export function factorPresented(ctx: AuthContext): RequestHandler {
  const check = step((req) => requireFactor(ctx, requestSessionOf(req).user, findAuth(req)?.amr))
  return describeStep(check, { refuses: [MfaRequiredError] })
}

/**
 * Rejects a request to add a way to log in while the address is unverified, because an attacker may have registered the address. The
 * owner's first verification would then have to remove the added way to log in. The rule applies only if the account can verify its
 * address, which needs a mailer and a column for `emailVerifiedAt`.
 * @throws EmailNotVerifiedError with the path of the route to call
 */
export function requireVerifiedAddress(ctx: AuthContext, user: UserRecord): void {
  const canProve = ctx.mailQueue !== null && ctx.store.users.fields.has('emailVerifiedAt')
  if (!canProve || user.emailVerifiedAt !== null) return
  throw new EmailNotVerifiedError({
    details: { request: `${ctx.prefix}/email-verify/request` },
    explains: localized('error.prove_address_first'),
  })
}

/** Returns `requireVerifiedAddress` as a middleware. The middleware runs after `aliveSession` and before `freshSession`. */
export function verifiedAddress(ctx: AuthContext): RequestHandler {
  const check = step((req) => requireVerifiedAddress(ctx, requestSessionOf(req).user))
  return describeStep(check, { refuses: [EmailNotVerifiedError] })
}
