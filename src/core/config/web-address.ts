/** The rules for addresses in settings. Each function returns true if the library may use the text unchanged. */

/**
 * Returns true for an origin exactly as a browser sends it, such as `https://app.example.com`. http is allowed only on the loopback. The
 * function rejects `*`. The URL parser accepts `*` in a host name, but no browser sends `*`, so a wildcard would never match.
 */
export function isOrigin(text: string): boolean {
  const url = parse(text)
  return url !== null && isProtected(url) && url.origin === text && !text.includes('*')
}

/** The origins of apps in a web view, and of browser extensions. Only the app or extension itself has such an origin. */
const appOrigin =
  /^(?:(?:capacitor|tauri):\/\/localhost|ionic:\/\/[a-z\d.-]+|chrome-extension:\/\/[a-p]{32}|moz-extension:\/\/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})$/

/** Returns true for a web origin, and for an origin of an app in a web view or of a browser extension. */
export function isTrustableOrigin(text: string): boolean {
  return appOrigin.test(text) || isOrigin(text)
}

/** Returns true for an origin of a passkey: a web origin, or the key hash of an Android app. */
export function isPasskeyOrigin(text: string): boolean {
  return /^android:apk-key-hash:[\w-]{43}$/.test(text) || isOrigin(text)
}

/** Returns true if a host name is the domain or a subdomain: `id.example.com` is below `example.com`. */
export function isAtOrBelow(hostname: string, domain: string): boolean {
  return hostname === domain || hostname.endsWith(`.${domain}`)
}

/** Returns true for a target of redirects. The target is an absolute https URL (http only on the loopback), or a path of the same site. */
export function isRedirectTarget(text: string): boolean {
  return isPlainText(text) && (isPath(text) || isAbsoluteAddress(text))
}

/** Returns true for the URL of a mailed link. The URL is absolute and contains `{token}` once, after the host. */
export function isLinkTemplate(text: string): boolean {
  if (!isPlainText(text) || text.split('{token}').length !== 2) return false
  const [one, other] = ['a', 'b'].map((token) => parse(text.replace('{token}', token)))
  return isAbsoluteAddress(text.replace('{token}', 'a')) && one?.origin === other?.origin
}

/** Returns true for an absolute https URL (http only on the loopback) without credentials. */
export function isAbsoluteAddress(text: string): boolean {
  const url = parse(text)
  // The URL parser accepts 'https:\\host' and 'https:host', but browsers read both texts differently. So the text must begin with
  // `http(s)://`.
  return url !== null && isProtected(url) && url.username === '' && url.password === '' && /^https?:\/\/[^/\\]/i.test(text)
}

/**
 * Returns true for the redirect URI of an app that stores its own tokens. The URI must be spelled as the URL parser writes it, because the
 * library compares URIs byte for byte. A custom scheme is a reversed domain of the vendor, so a custom scheme must contain a dot (RFC 8252
 * section 7.1). The dot also excludes schemes that mean something to a browser, such as `javascript:`.
 *
 * Rejects `*` and port 0. They are written for "any", and no app sends them, so the entry would never match.
 */
export function isAppRedirect(text: string): boolean {
  if (!isPlainText(text) || text.length > 512 || /[#*]/.test(text) || parse(text)?.href !== text) return false
  return (isAbsoluteAddress(text) && new URL(text).port !== '0') || /^[a-z][a-z\d+-]*(?:\.[a-z\d+-]+)+:\/./.test(text)
}

/** Returns true for a path with exactly one leading slash, because browsers read '//host' as another site. */
function isPath(text: string): boolean {
  return /^\/(?!\/)/.test(text)
}

/**
 * Returns true for visible ASCII without the backslash. A header can contain such text. Tabs and backslashes are not allowed, because
 * browsers read '/\t/host' and '/\host' as '//host'.
 */
function isPlainText(text: string): boolean {
  return text.length <= 2048 && /^[\x21-\x5b\x5d-\x7e]+$/.test(text)
}

function isProtected(url: URL): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))
}

/**
 * Returns true for a loopback host (RFC 6761 section 6.3 and RFC 8252 section 7.3). The URL parser has already normalized the host name.
 */
function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}

function parse(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null
}
