import type { AuthContext } from '../context'
import { signInLocation } from '../http/sign-in-page'
import { withParameter } from '../http/with-parameter'
import type { Reader } from '../pages/reader'

/** True if people sign in on our login page, so that it can show a notice. False: on the host's. */
export function isOurSignIn({ settings: { loginUrl, publicUrl }, prefix }: AuthContext): boolean {
  return loginUrl === null || loginUrl === `${prefix}/login` || loginUrl === `${publicUrl}${prefix}/login`
}

/** Returns the login page, with the way back: the host's page, or ours in the reader's language. */
export function signInAddress(ctx: AuthContext, reader: Reader, returnTo: string | null = null): string {
  return signInLocation(ctx.settings, pageOf(ctx, reader), returnTo)
}

/**
 * Returns the login page for a person who is signed in and wants to sign in again. Without `switch=1` it would redirect that person to the
 * account.
 */
export function signInAgainAddress(ctx: AuthContext, reader: Reader, returnTo: string | null): string {
  return signInLocation(ctx.settings, withParameter(pageOf(ctx, reader), 'switch', '1'), returnTo)
}

function pageOf(ctx: AuthContext, reader: Reader): string {
  return isOurSignIn(ctx) ? reader.href('/login') : String(ctx.settings.loginUrl)
}
