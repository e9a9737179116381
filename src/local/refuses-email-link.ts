import type { AuthContext } from '../context'
import type { UserRecord } from '../store/auth-store'

/** Instead of a link: `refusesEmailLink` matched, so there is no token, no mail, and no active account. */
export const ACTIVATION_WITHHELD: unique symbol = Symbol.for('doorward.activation-withheld.v1')

/** The host's word on whether this account may be entered by a mailed link. Never asked inside a unit: it may be slow. */
export async function refusesEmailLink(ctx: AuthContext, user: UserRecord): Promise<boolean> {
  return (await ctx.refusesEmailLink?.(user)) === true
}
