import type { Settings } from './every-setting'

/**
 * Completes the settings for `pagesEnabled`: mailed links, the sign-in page and the redirects to the built-in pages. Keeps every URL that
 * the host set.
 */
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
