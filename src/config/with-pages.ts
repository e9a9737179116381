import type { Settings } from './every-setting'

/** With `pagesEnabled`, sets mailed links, the sign-in page and the redirects to our pages, unless the host has set its own. */
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
