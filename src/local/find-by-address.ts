import type { AuthContext } from '../context'
import type { UserRecord } from '../store/auth-store'

/** Returns the account of an address as somebody typed it. A text column takes neither NUL nor half a surrogate pair: nobody has such. */
export async function findByAddress(ctx: AuthContext, address: string): Promise<UserRecord | null> {
  const isStorable = address !== '' && !address.includes('\0') && address.isWellFormed()
  return isStorable ? ctx.store.users.findByEmail(address) : null
}
