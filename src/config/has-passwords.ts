import type { Settings } from './every-setting'

/** True where people have passwords: local accounts are on, and `passwordLogin` is not switched off. */
export function hasPasswords({ localAccountsEnabled, passwordLogin }: Pick<Settings, 'localAccountsEnabled' | 'passwordLogin'>): boolean {
  return localAccountsEnabled && passwordLogin
}

/** For calls without HTTP, which no missing route refuses. @throws Error where `passwordLogin` is off */
export function requirePasswords({ passwordLogin }: Pick<Settings, 'passwordLogin'>): void {
  if (!passwordLogin)
    throw new Error('Passwords are off: passwordLogin (AUTH_PASSWORD_LOGIN) is false, so no password is set, changed or asked for.')
}
