import { type AuthContext, transaction } from '../../context'
import { EmailLinkForbiddenError } from '../../core/errors'
import type { UserRecord, UserTokenRecord } from '../../store/auth-store'
import type { LinkPurpose } from './email-link'

/**
 * The value that doorward returns instead of a link if `refusesEmailLink` returned true. doorward made no token, sent no mail and did not
 * activate the account.
 */
export const ACTIVATION_WITHHELD: unique symbol = Symbol.for('doorward.activation-withheld.v1')

/**
 * Returns true if the host rejects mailed links to this account. Never call the function inside our transactions, because the host's hook
 * may be slow.
 */
export async function refusesEmailLink(
  { refusesEmailLink }: Partial<Pick<AuthContext, 'refusesEmailLink'>>,
  user: UserRecord,
): Promise<boolean> {
  return (await refusesEmailLink?.(user)) === true
}

/**
 * Invalidates all links of the account with this purpose, in a transaction of its own, and then throws. So the error does not roll the
 * transaction back. The links count as replaced by a newer link, and not as redeemed.
 * @throws EmailLinkForbiddenError
 */
export async function refuseLink(ctx: AuthContext, { userId }: UserTokenRecord, purpose: LinkPurpose): Promise<never> {
  await transaction(ctx, (ctx) => ctx.store.userTokens.consumeAllForUser(userId, ctx.now(), purpose))
  throw new EmailLinkForbiddenError()
}
