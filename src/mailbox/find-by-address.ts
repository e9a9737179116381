import type { AuthContext } from '../context'
import type { UserRecord } from '../store/auth-store'

/**
 * Returns the account of an address as a person typed it. A text column accepts no NUL and no lone surrogate, so no account has such an
 * address.
 */
export async function findByAddress(ctx: AuthContext, address: string): Promise<UserRecord | null> {
  const isStorable = address !== '' && !address.includes('\0') && address.isWellFormed()
  return isStorable ? ctx.store.users.findByEmail(address) : null
}

/**
 * Looks up an address that no account has (RFC 2606 reserves the domain). Routes that respond before they look up the address call it
 * first. Then a database that is down gives 503, and the response time does not depend on whether a row exists.
 */
export async function lookForNobody(ctx: AuthContext): Promise<void> {
  await ctx.store.users.findByEmail('nobody@doorward.invalid')
}
