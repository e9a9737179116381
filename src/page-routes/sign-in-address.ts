import type { AuthContext } from '../context'
import { signInLocation } from '../http/sign-in-page'
import type { Reader } from '../pages/reader'

/** Returns the login page, with the way back: the host's page, or ours in the reader's language. */
export function signInAddress(ctx: AuthContext, reader: Reader, returnTo: string | null = null): string {
  return addressOf(ctx, reader.href('/login'), returnTo)
}

/** Returns the login page for a person who is signed in and wants to sign in again. Ours would redirect that person to the account. */
export function signInAgainAddress(ctx: AuthContext, reader: Reader, returnTo: string | null): string {
  return addressOf(ctx, reader.href('/login', { switch: '1' }), returnTo)
}

function addressOf({ settings, prefix }: AuthContext, ours: string, returnTo: string | null): string {
  const isOurs = settings.loginUrl === null || settings.loginUrl === `${prefix}/login`
  return signInLocation(settings, isOurs ? ours : String(settings.loginUrl), returnTo)
}
