import type { AuthContext } from '../context'
import type { Reader } from '../pages/reader'

/** Returns the login page: the host's, or ours in the reader's language. */
export function signInAddress({ settings, prefix }: AuthContext, reader: Reader): string {
  const isOurs = settings.loginUrl === null || settings.loginUrl === `${prefix}/login`
  return isOurs ? reader.href('/login') : String(settings.loginUrl)
}
