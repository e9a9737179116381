import { type AuthContext, unitOfWork } from '../context'
import { EmailLinkForbiddenError } from '../errors'
import type { UserRecord, UserTokenRecord } from '../store/auth-store'
import type { LinkPurpose } from './email-link'

/** Returned instead of a link when `refusesEmailLink` returned true. No token and no mail were made, and the account was not activated. */
export const ACTIVATION_WITHHELD: unique symbol = Symbol.for('doorward.activation-withheld.v1')

/** True if the host refuses mailed links to this account. Never call it inside a transaction of ours, because the hook may be slow. */
export async function refusesEmailLink(
  { refusesEmailLink }: Partial<Pick<AuthContext, 'refusesEmailLink'>>,
  user: UserRecord,
): Promise<boolean> {
  return (await refusesEmailLink?.(user)) === true
}

/**
 * Invalidates a link and commits, because the refusal must last. Marks it as replaced by a newer link, so that it never counts as redeemed.
 * @throws EmailLinkForbiddenError
 */
export async function refuseLink(ctx: AuthContext, { userId }: UserTokenRecord, purpose: LinkPurpose): Promise<never> {
  await unitOfWork(ctx, (ctx) => ctx.store.userTokens.consumeAllForUser(userId, ctx.now(), purpose))
  throw new EmailLinkForbiddenError()
}
