import { hintCookieName, type Settings } from './every-setting'
import { isAtOrBelow } from './web-address'

export function settingsConflicts(settings: Settings): string[] {
  return [
    ...samesiteNone(settings),
    ...cookieNames(settings),
    ...redirects(settings),
    ...appRedirects(settings),
    ...secondFactor(settings),
    ...passkeys(settings),
    ...grace(settings),
    ...sessionEnds(settings),
    ...tokenProfile(settings),
    ...sessionDelivery(settings),
    ...pages(settings),
    ...emailLoginSignup(settings),
    ...signupMode(settings),
    ...signupWith(settings),
    ...unknownDevice(settings),
    ...trustedDevices(settings),
  ]
}

function samesiteNone({ cookieSamesite, cookieSecure }: Settings): string[] {
  if (cookieSamesite !== 'none' || cookieSecure) return []
  return ["cookieSamesite 'none' needs cookieSecure true: browsers drop such a cookie otherwise."]
}

/** RFC 6265bis section 4.1.3. Ignores letter case, as browsers do. */
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
  const ours = ['csrf_token', hintCookieName]
  if (new Set([...names.map((name) => settings[name]), ...ours]).size < names.length + ours.length) {
    conflicts.push(`${names.join(', ')} must differ from each other, from csrf_token and from auth_hint.`)
  }
  return conflicts
}

/** A redirect has no body, so with `tokenDelivery: 'bearer'` the client would not get the tokens. */
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
    "appRedirects (AUTH_APP_REDIRECTS) needs tokenDelivery 'bearer' or 'both': an app that keeps its own tokens reads them from the body of a response. Change tokenDelivery, or remove appRedirects.",
  ]
}

function secondFactor({ mfaEnabled, mfaIssuer }: Settings): string[] {
  return mfaEnabled && mfaIssuer === null ? ['mfaEnabled needs mfaIssuer (AUTH_MFA_ISSUER), the name that authenticator apps show.'] : []
}

/** The RP id must be the host of the page or a parent domain (Web Authentication Level 3, section 5.1.3). */
function passkeys({ passkeysEnabled, publicUrl, webauthnRpId, webauthnRpName, mfaIssuer, webauthnOrigins }: Settings): string[] {
  if (!passkeysEnabled) return []
  const nameless = webauthnRpName === null && mfaIssuer === null
  const conflicts = nameless
    ? ['passkeysEnabled needs webauthnRpName (AUTH_WEBAUTHN_RP_NAME), the name that browsers show; or mfaIssuer.']
    : []
  if (publicUrl === '')
    return [
      ...conflicts,
      'passkeysEnabled needs publicUrl (AUTH_PUBLIC_URL), because a passkey belongs to a domain; set it to your public origin.',
    ]
  const { hostname } = new URL(publicUrl)
  const rpId = webauthnRpId ?? hostname
  if (isAddress(hostname))
    return [
      ...conflicts,
      'passkeysEnabled needs a publicUrl (AUTH_PUBLIC_URL) with a domain, because a passkey cannot belong to an IP address; for development, use localhost.',
    ]
  const isRelated = publicUrl.startsWith('https:') && webauthnOrigins.includes(publicUrl)
  if ((!isAtOrBelow(hostname, rpId) && !isRelated) || (rpId !== hostname && !rpId.includes('.')))
    conflicts.push(
      `webauthnRpId (AUTH_WEBAUTHN_RP_ID) must be the host of publicUrl, ${hostname}, or a domain above it. For a related origin, add publicUrl to webauthnOrigins.`,
    )
  if (webauthnOrigins.some((origin) => origin.startsWith('http:') && !isAtOrBelow(new URL(origin).hostname, rpId)))
    conflicts.push(
      'webauthnOrigins (AUTH_WEBAUTHN_ORIGINS) has an http origin that is not at or below webauthnRpId: browsers refuse passkeys there; use https, or remove it.',
    )
  if (webauthnOrigins.some((origin) => origin.startsWith('https:') && isAddress(new URL(origin).hostname)))
    conflicts.push('webauthnOrigins (AUTH_WEBAUTHN_ORIGINS) has an IP address: browsers have no passkeys there; remove it.')
  return conflicts
}

function isAddress(hostname: string): boolean {
  return hostname.startsWith('[') || /(?:^|\.)\d+$/.test(hostname)
}

/** With a grace period as long as an access token, the library could miss the use of a stolen refresh token. */
function grace({ refreshReuseGraceSeconds, accessTokenTtlSeconds }: Settings): string[] {
  if (refreshReuseGraceSeconds === 0 || refreshReuseGraceSeconds < accessTokenTtlSeconds) return []
  return [
    'refreshReuseGraceSeconds (AUTH_REFRESH_REUSE_GRACE_SECONDS) must be below accessTokenTtlSeconds (AUTH_ACCESS_TOKEN_TTL_SECONDS).',
  ]
}

function sessionEnds({ sessionTtlSeconds, sessionMaxSeconds }: Settings): string[] {
  if (sessionMaxSeconds >= sessionTtlSeconds) return []
  return [
    'sessionMaxSeconds (AUTH_SESSION_MAX_SECONDS) must not be less than sessionTtlSeconds (AUTH_SESSION_TTL_SECONDS), because no session would last that long.',
  ]
}

/** RFC 9068 section 2.2 requires both. */
function tokenProfile({ accessTokenIssuer, accessTokenAudience }: Settings): string[] {
  if ((accessTokenIssuer === null) === (accessTokenAudience === null)) return []
  return [
    accessTokenIssuer === null
      ? 'accessTokenAudience (AUTH_ACCESS_TOKEN_AUDIENCE) needs accessTokenIssuer (AUTH_ACCESS_TOKEN_ISSUER), the issuer of the tokens.'
      : 'accessTokenIssuer (AUTH_ACCESS_TOKEN_ISSUER) needs accessTokenAudience (AUTH_ACCESS_TOKEN_AUDIENCE), the recipient of the tokens.',
  ]
}

/** A session has no access tokens. */
function sessionDelivery({ tokenDelivery, accessTokenIssuer }: Settings): string[] {
  if (tokenDelivery !== 'session' || accessTokenIssuer === null) return []
  return [
    "accessTokenIssuer (AUTH_ACCESS_TOKEN_ISSUER) cannot be used with tokenDelivery 'session', which issues no access tokens; remove one of them.",
  ]
}

function emailLoginSignup({ emailLoginSignup, emailLogin, signupEnabled }: Settings): string[] {
  if (!emailLoginSignup || (emailLogin !== 'off' && signupEnabled)) return []
  return ['emailLoginSignup (AUTH_EMAIL_LOGIN_SIGNUP) needs emailLogin (AUTH_EMAIL_LOGIN) and signupEnabled (AUTH_SIGNUP_ENABLED).']
}

function signupMode({ signupMode, invitationsEnabled, autoActivate }: Settings): string[] {
  if (signupMode === 'approve' && autoActivate)
    return [
      "signupMode (AUTH_SIGNUP_MODE) 'approve' cannot be used with autoActivate (AUTH_AUTO_ACTIVATE): a person verifies the address before an administrator approves the account.",
    ]
  if (signupMode !== 'invite' || invitationsEnabled) return []
  return [
    "signupMode (AUTH_SIGNUP_MODE) 'invite' cannot be used with invitationsEnabled (AUTH_INVITATIONS_ENABLED) false, because nobody could sign up; remove invitationsEnabled.",
  ]
}

/** An identity at a provider does not count as a way to recover a lost passkey, because the account may have none. */
function signupWith({ signupWith, passwordLogin, passkeysEnabled, autoActivate, emailLogin }: Settings): string[] {
  const setting = 'signupWith (AUTH_SIGNUP_WITH)'
  if (!signupWith.includes('password') && passwordLogin)
    return [`${setting} without 'password' needs passwordLogin (AUTH_PASSWORD_LOGIN) false.`]
  if (!signupWith.includes('passkey')) return []
  return [
    ...(passkeysEnabled ? [] : [`${setting} with 'passkey' needs passkeysEnabled (AUTH_PASSKEYS_ENABLED).`]),
    ...(autoActivate
      ? [`${setting} with 'passkey' cannot be used with autoActivate (AUTH_AUTO_ACTIVATE): the mailed link must verify the address first.`]
      : []),
    ...(passwordLogin || emailLogin !== 'off'
      ? []
      : [
          `${setting} with 'passkey' needs passwordLogin (AUTH_PASSWORD_LOGIN) or emailLogin (AUTH_EMAIL_LOGIN): otherwise nobody can recover a lost passkey.`,
        ]),
  ]
}

/** The library recognizes a device by a cookie. */
function unknownDevice({ unknownDevice, tokenDelivery }: Settings): string[] {
  if (unknownDevice !== 'notice' || tokenDelivery !== 'bearer') return []
  return [
    "unknownDevice (AUTH_UNKNOWN_DEVICE) 'notice' needs tokenDelivery (AUTH_TOKEN_DELIVERY) 'cookie', 'both' or 'session': a cookie distinguishes a new browser from a known one.",
  ]
}

/** The library recognizes a trusted browser by a cookie. */
function trustedDevices({ trustedDeviceDays, mfaEnabled, tokenDelivery }: Settings): string[] {
  if (trustedDeviceDays === 0) return []
  const name = 'trustedDeviceDays (AUTH_TRUSTED_DEVICE_DAYS)'
  return [
    ...(mfaEnabled ? [] : [`${name} needs mfaEnabled (AUTH_MFA_ENABLED): a trusted browser saves the second factor.`]),
    ...(tokenDelivery === 'bearer'
      ? [`${name} needs tokenDelivery (AUTH_TOKEN_DELIVERY) 'cookie', 'both' or 'session': a cookie names a trusted browser.`]
      : []),
  ]
}

/** Pages need cookies, because they store no token. */
function pages({ pagesEnabled, tokenDelivery }: Settings): string[] {
  if (!pagesEnabled || tokenDelivery !== 'bearer') return []
  return [
    "pagesEnabled (AUTH_PAGES_ENABLED) needs tokenDelivery (AUTH_TOKEN_DELIVERY) 'cookie', 'both' or 'session': a page signs people in by cookies.",
  ]
}
