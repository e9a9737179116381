import type { Settings } from './every-setting'

/** What two settings together make impossible or unsafe, one sentence each; empty when they agree. */
export function settingsConflicts(settings: Settings): string[] {
  return [
    ...samesiteNone(settings),
    ...cookieNames(settings),
    ...redirects(settings),
    ...appRedirects(settings),
    ...secondFactor(settings),
    ...grace(settings),
    ...sessionEnds(settings),
    ...tokenProfile(settings),
    ...sessionDelivery(settings),
  ]
}

function samesiteNone({ cookieSamesite, cookieSecure }: Settings): string[] {
  if (cookieSamesite !== 'none' || cookieSecure) return []
  return ["cookieSamesite 'none' needs cookieSecure true: browsers drop such a cookie otherwise."]
}

/** RFC 6265bis section 4.1.3; browsers compare the prefixes without regard to letter case. */
function cookieNames(settings: Settings): string[] {
  const conflicts: string[] = []
  const names = ['accessCookieName', 'refreshCookieName', 'oauthStateCookieName', 'sessionCookieName'] as const
  for (const name of names) {
    const prefix = /^__(secure|http|host)-/i.exec(settings[name])?.[1]?.toLowerCase()
    if (!prefix) continue
    if (!settings.cookieSecure) conflicts.push(`${name} has a prefix that needs cookieSecure true.`)
    if (prefix !== 'host') continue
    if (settings.cookieDomain !== null) conflicts.push(`${name} starts with __Host-, which forbids cookieDomain.`)
    if (name === 'refreshCookieName' || name === 'oauthStateCookieName') {
      conflicts.push(`${name} starts with __Host-, which needs the path '/', and this cookie is limited to the router; use __Secure-.`)
    }
  }
  if (new Set([...names.map((name) => settings[name]), 'csrf_token']).size <= names.length) {
    conflicts.push(`${names.join(', ')} must differ from each other and from csrf_token.`)
  }
  return conflicts
}

/** With tokens in the body alone, a redirect would lose them. */
function redirects({ tokenDelivery, oauthSuccessRedirect, oauthErrorRedirect }: Settings): string[] {
  if (tokenDelivery !== 'bearer') return []
  const given = Object.entries({ oauthSuccessRedirect, oauthErrorRedirect }).filter(([, target]) => target !== null)
  return given.map(
    ([name]) => `${name} needs tokenDelivery 'cookie', 'both' or 'session': with 'bearer' the redirect would lose the tokens.`,
  )
}

function appRedirects({ tokenDelivery, appRedirects }: Settings): string[] {
  if (appRedirects.length === 0 || tokenDelivery === 'bearer' || tokenDelivery === 'both') return []
  return [
    "appRedirects (AUTH_APP_REDIRECTS) needs tokenDelivery 'bearer' or 'both': an app that keeps its own tokens reads them in the body of an answer.",
  ]
}

function secondFactor({ mfaEnabled, mfaIssuer }: Settings): string[] {
  return mfaEnabled && mfaIssuer === null ? ['mfaEnabled needs mfaIssuer (AUTH_MFA_ISSUER), the name authenticator apps show.'] : []
}

/** A window as long as an access token would keep a stolen refresh token alive unseen. */
function grace({ refreshReuseGraceSeconds, accessTokenTtlSeconds }: Settings): string[] {
  if (refreshReuseGraceSeconds === 0 || refreshReuseGraceSeconds < accessTokenTtlSeconds) return []
  return ['refreshReuseGraceSeconds must be below accessTokenTtlSeconds.']
}

function sessionEnds({ sessionTtlSeconds, sessionMaxSeconds }: Settings): string[] {
  if (sessionMaxSeconds >= sessionTtlSeconds) return []
  return ['sessionMaxSeconds (AUTH_SESSION_MAX_SECONDS) must not be less than sessionTtlSeconds: no session could last that long.']
}

/** RFC 9068 section 2.2 asks for both. */
function tokenProfile({ accessTokenIssuer, accessTokenAudience }: Settings): string[] {
  if ((accessTokenIssuer === null) === (accessTokenAudience === null)) return []
  return [
    accessTokenIssuer === null
      ? 'accessTokenAudience (AUTH_ACCESS_TOKEN_AUDIENCE) needs accessTokenIssuer (AUTH_ACCESS_TOKEN_ISSUER), who issues the tokens.'
      : 'accessTokenIssuer (AUTH_ACCESS_TOKEN_ISSUER) needs accessTokenAudience (AUTH_ACCESS_TOKEN_AUDIENCE), whom the tokens are for.',
  ]
}

/** In that delivery nobody gets an access token, so nobody has to be told who issues them. */
function sessionDelivery({ tokenDelivery, accessTokenIssuer }: Settings): string[] {
  if (tokenDelivery !== 'session' || accessTokenIssuer === null) return []
  return ["accessTokenIssuer (AUTH_ACCESS_TOKEN_ISSUER) cannot be used with tokenDelivery 'session', which issues no access tokens."]
}
