import type { AuthContext } from '../context'
import type { UserRecord } from '../store/auth-store'

/** Returns the account of an address as somebody typed it. A text column takes neither NUL nor half a surrogate pair: nobody has such. */
export async function findByAddress(ctx: AuthContext, address: string): Promise<UserRecord | null> {
  const isStorable = address !== '' && !address.includes('\0') && address.isWellFormed()
  return isStorable ? ctx.store.users.findByEmail(address) : null
}

/**
 * Looks for an address that nobody has (RFC 2606 keeps the domain free). A route that answers before it looks at an address asks this, so
 * that a database that is away is 503 and the answer's time depends on no row.
 */
export async function lookForNobody(ctx: AuthContext): Promise<void> {
  await ctx.store.users.findByEmail('nobody@doorward.invalid')
}
