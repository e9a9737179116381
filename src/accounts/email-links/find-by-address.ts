import type { AuthContext } from '../../context'
import type { UserRecord } from '../../store/auth-store'

/**
 * Returns the account of an address that a person typed. Returns null without a query if the address has a NUL or a lone surrogate, because
 * a text column cannot store such an address.
 */
export async function findByAddress(ctx: AuthContext, address: string): Promise<UserRecord | null> {
  const isStorable = address !== '' && !address.includes('\0') && address.isWellFormed()
  return isStorable ? ctx.store.users.findByEmail(address) : null
}

/**
 * Looks up an address that no account has (RFC 2606 reserves the domain). Some routes respond before looking up the real address. These
 * routes call this function first, so that they can answer 503 if the database is down. The response time reveals nothing, because it does
 * not depend on whether an account exists.
 */
export async function lookForNobody(ctx: AuthContext): Promise<void> {
  await ctx.store.users.findByEmail('nobody@doorward.invalid')
}
