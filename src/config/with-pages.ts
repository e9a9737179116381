import type { Settings } from './every-setting'

/** With `pagesEnabled` mailed links lead to our pages, and so does every way that the host has not laid elsewhere. */
export function withPages(settings: Settings, prefix: string): Settings {
  if (!settings.pagesEnabled) return settings
  return Object.freeze({
    ...settings,
    backendLinks: true,
    loginUrl: settings.loginUrl ?? `${prefix}/login`,
    oauthSuccessRedirect: settings.oauthSuccessRedirect ?? `${prefix}/account`,
    oauthErrorRedirect: settings.oauthErrorRedirect ?? `${prefix}/login`,
  })
}
