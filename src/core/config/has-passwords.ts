import { withOwnMessage } from '../logger'
import type { Settings } from './every-setting'

/** Returns true if people have passwords: `localAccountsEnabled` and `passwordLogin` are true. */
export function hasPasswords({ localAccountsEnabled, passwordLogin }: Pick<Settings, 'localAccountsEnabled' | 'passwordLogin'>): boolean {
  return localAccountsEnabled && passwordLogin
}

/**
 * Rejects a call of `auth.service` that needs a password. Only the service needs this check, because the HTTP routes for passwords do not
 * exist with `passwordLogin: false`.
 * @throws Error if `passwordLogin` is false
 */
export function requirePasswords({ passwordLogin }: Pick<Settings, 'passwordLogin'>): void {
  if (!passwordLogin)
    throw withOwnMessage(
      new Error('Passwords are off: passwordLogin (AUTH_PASSWORD_LOGIN) is false, so no password is set, changed or asked for.'),
    )
}
