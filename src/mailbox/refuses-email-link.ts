import { type AuthContext, unitOfWork } from '../context'
import { EmailLinkForbiddenError } from '../errors'
import type { UserRecord, UserTokenRecord } from '../store/auth-store'
import type { LinkPurpose } from './email-link'

/** Instead of a link: `refusesEmailLink` matched, so there is no token, no mail, and no active account. */
export const ACTIVATION_WITHHELD: unique symbol = Symbol.for('doorward.activation-withheld.v1')

/** The host's word on whether this account may be entered by a mailed link. Never asked inside a unit of ours: it may be slow. */
export async function refusesEmailLink(
  { refusesEmailLink }: Partial<Pick<AuthContext, 'refusesEmailLink'>>,
  user: UserRecord,
): Promise<boolean> {
  return (await refusesEmailLink?.(user)) === true
}

/**
 * The refusal persists: the link is spent and committed, and nothing else has changed. Spent as if by a newer one, so that
 * it never counts as redeemed.
 * @throws EmailLinkForbiddenError
 */
export async function refuseLink(ctx: AuthContext, { userId }: UserTokenRecord, purpose: LinkPurpose): Promise<never> {
  await unitOfWork(ctx, (ctx) => ctx.store.userTokens.consumeAllForUser(userId, ctx.now(), purpose))
  throw new EmailLinkForbiddenError()
}
