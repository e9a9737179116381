import type { AuthContext } from '../context'
import type { Reader } from '../http/html/reader'
import { signInLocation } from '../http/sign-in-page'
import { withParameter } from '../http/with-parameter'

/** Returns true if people log in on our login page, which can show a notice. Returns false if people log in on the host's page. */
export function isOurSignIn({ settings: { loginUrl, publicUrl }, prefix }: AuthContext): boolean {
  return loginUrl === null || loginUrl === `${prefix}/login` || loginUrl === `${publicUrl}${prefix}/login`
}

/** Returns the URL of the login page: the host's page, or our page in the reader's language. The URL contains the address to return to. */
export function signInAddress(ctx: AuthContext, reader: Reader, returnTo: string | null = null): string {
  return signInLocation(ctx.settings, pageOf(ctx, reader), returnTo)
}

/**
 * Returns the login page for a person who is logged in and wants to log in again. Without `switch=1`, the login page would redirect that
 * person to the account.
 */
export function signInAgainAddress(ctx: AuthContext, reader: Reader, returnTo: string | null): string {
  return signInLocation(ctx.settings, withParameter(pageOf(ctx, reader), 'switch', '1'), returnTo)
}

function pageOf(ctx: AuthContext, reader: Reader): string {
  return isOurSignIn(ctx) ? reader.href('/login') : String(ctx.settings.loginUrl)
}
