import type { Request } from 'express'
import type { AuthContext } from '../../context'
import type { Locale } from '../../http/locale'
import { sessionOfRequest } from './signup-ownership'

/**
 * Returns the lines for the page of a login link. The first line says to which account the link logs in. A second line says which account's
 * session the link replaces in this browser.
 */
export async function loginLinkSummary(ctx: AuthContext, req: Request, email: string, locale: Locale): Promise<string[]> {
  const session = await sessionOfRequest(ctx, req)
  const user = session && (await ctx.store.users.find(session.userId))
  const replaced = user && user.email !== email ? [ctx.texts.say(locale, 'link.replaces', { email: user.email })] : []
  return [ctx.texts.say(locale, 'link.signs_in_as', { email }), ...replaced]
}
