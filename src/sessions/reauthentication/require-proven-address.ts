import type { RequestHandler } from 'express'
import type { AuthContext } from '../../context'
import { EmailNotVerifiedError } from '../../core/errors'
import { localized } from '../../core/texts/localized'
import { describeStep } from '../../http/description'
import { step } from '../../http/routes'
import type { UserRecord } from '../../store/auth-store'
import { requestSessionOf } from './fresh-session'

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
